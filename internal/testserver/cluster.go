package testserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A RedisCluster has three masters without replicas.
type RedisCluster struct {
	Nodes []*RedisServer
}

const clusterSlots = 16384

// NewRedisCluster starts a cluster.
func NewRedisCluster(ctx context.Context) (*RedisCluster, error) {
	c := new(RedisCluster)
	for range 3 {
		node, err := NewRedis(ctx, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
		if err != nil {
			c.Close()
			return nil, err
		}
		c.Nodes = append(c.Nodes, node)
	}
	if err := c.join(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("testserver: cluster: %w", err)
	}
	return c, nil
}

func (c *RedisCluster) join(ctx context.Context) error {
	for i, node := range c.Nodes {
		client := node.Client()
		defer func() { _ = client.Close() }()
		from, to := i*clusterSlots/len(c.Nodes), (i+1)*clusterSlots/len(c.Nodes)-1
		if err := client.ClusterAddSlotsRange(ctx, from, to).Err(); err != nil {
			return err
		}
		if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return err
		}
		if err := client.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(c.Nodes[0].port)).Err(); err != nil {
			return err
		}
	}
	for _, node := range c.Nodes {
		client := node.Client()
		defer func() { _ = client.Close() }()
		err := node.process.waitFor(ctx, func(ctx context.Context) error {
			info, err := client.ClusterInfo(ctx).Result()
			if err == nil && (!strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3")) {
				err = fmt.Errorf("not joined: %s", info)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Addrs are the nodes' addresses.
func (c *RedisCluster) Addrs() []string {
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// MoveSlot gives the slot of key to another master, with the keys that are in
// it, so that clients which ask the old one are told MOVED.
func (c *RedisCluster) MoveSlot(ctx context.Context, key string) error {
	clients := make([]*redis.Client, len(c.Nodes))
	ids := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		clients[i] = n.Client()
		defer func() { _ = clients[i].Close() }()
		id, err := clients[i].Do(ctx, "CLUSTER", "MYID").Text()
		if err != nil {
			return err
		}
		ids[i] = id
	}
	slot, err := clients[0].ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return err
	}
	from := int(slot) * len(c.Nodes) / clusterSlots
	to := (from + 1) % len(c.Nodes)
	if err := clients[to].Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[from]).Err(); err != nil {
		return err
	}
	if err := clients[from].Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to]).Err(); err != nil {
		return err
	}
	keys, err := clients[from].ClusterGetKeysInSlot(ctx, int(slot), 1000).Result()
	if err != nil {
		return err
	}
	for _, k := range keys {
		err := clients[from].Migrate(ctx, "127.0.0.1", strconv.Itoa(c.Nodes[to].port), k, 0, 5*time.Second).Err()
		if err != nil {
			return err
		}
	}
	for _, i := range []int{to, from, 3 - to - from} {
		if err := clients[i].Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", ids[to]).Err(); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the nodes.
func (c *RedisCluster) Close() {
	for _, n := range c.Nodes {
		n.Close()
	}
}

// StartRedisCluster starts a cluster for one test.
func StartRedisCluster(t testing.TB) *RedisCluster {
	t.Helper()
	c, err := NewRedisCluster(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, installAdvice)
	}
	t.Cleanup(c.Close)
	return c
}

// A RedisSentinel is a master with a replica, and a sentinel that makes the
// replica master when the master is away for half a second.
type RedisSentinel struct {
	Master, Replica *RedisServer

	// Addr is that of the sentinel, Name what it calls the master.
	Addr, Name string

	process process
	dir     string
}

// NewRedisSentinel starts the three.
func NewRedisSentinel(ctx context.Context) (*RedisSentinel, error) {
	s := &RedisSentinel{Name: "submitonce"}
	ok := false
	defer func() {
		if !ok {
			s.Close()
		}
	}()
	var err error
	if s.Master, err = NewRedis(ctx); err != nil {
		return nil, err
	}
	if s.Replica, err = NewRedis(ctx, "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Master.port)); err != nil {
		return nil, err
	}
	if s.dir, err = tempDir(nil); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	config := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %d 1\n"+
		"sentinel down-after-milliseconds %[3]s 500\nsentinel failover-timeout %[3]s 3000\n",
		port, s.dir, s.Name, s.Master.port)
	file := filepath.Join(s.dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	s.process = process{name: s.Master.process.name, args: []string{file, "--sentinel"}}
	if err := s.process.start(); err != nil {
		return nil, err
	}
	err = s.process.waitFor(ctx, func(ctx context.Context) error {
		c := redis.NewSentinelClient(&redis.Options{Addr: s.Addr})
		defer func() { _ = c.Close() }()
		replicas, err := c.Replicas(ctx, s.Name).Result()
		if err == nil && (len(replicas) != 1 || replicas[0]["master-link-status"] != "ok") {
			err = fmt.Errorf("the sentinel does not know the replica yet: %v", replicas)
		}
		return err
	})
	ok = err == nil
	return s, err
}

// Close ends all three.
func (s *RedisSentinel) Close() {
	s.process.end(syscall.SIGKILL)
	for _, r := range []*RedisServer{s.Master, s.Replica} {
		if r != nil {
			r.Close()
		}
	}
	_ = os.RemoveAll(s.dir)
}

// StartRedisSentinel starts the three for one test.
func StartRedisSentinel(t testing.TB) *RedisSentinel {
	t.Helper()
	s, err := NewRedisSentinel(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, installAdvice)
	}
	t.Cleanup(s.Close)
	return s
}
