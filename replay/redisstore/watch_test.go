package redisstore_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
)

func watch(t testing.TB, s replay.Watcher, key string) <-chan struct{} {
	t.Helper()
	changed, stop, err := s.Watch(t.Context(), key)
	if err != nil {
		t.Fatalf("watch of %s: %v", key, err)
	}
	t.Cleanup(stop)
	return changed
}

// subscribers returns how many connections to node have subscribed to a channel.
func subscribers(t testing.TB, node *redis.Client, command, channel string) int64 {
	t.Helper()
	reply, err := node.Do(context.WithoutCancel(t.Context()), "PUBSUB", command, channel).Slice()
	if err != nil || len(reply) != 2 {
		t.Fatalf("PUBSUB %s: %v, %v", command, reply, err)
	}
	return reply[1].(int64)
}

func TestWatchersShareOneConnection(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	const keys = 50
	var stops []func()
	for i := range keys {
		for range 2 {
			_, stop, err := s.Watch(t.Context(), strconv.Itoa(i))
			if err != nil {
				t.Fatal(err)
			}
			stops = append(stops, stop)
		}
	}
	listening := func() (n int) {
		list, err := c.Do(t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if r == '\n' {
				n++
			}
		}
		return n
	}
	if n := listening(); n != 1 {
		t.Errorf("%d connections listen, want 1", n)
	}
	for _, stop := range stops {
		stop()
	}
	until(t, "all subscriptions ended", func() bool {
		return len(c.PubSubChannels(t.Context(), "*").Val()) == 0
	})
}

func TestAWatchWaitsForItsOwnSubscription(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	// The answers to what came before are still on their way when a key is watched
	// again.
	for range 200 {
		_, stop, err := s.Watch(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		stop()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := s.Watch(gone, "k"); !errors.Is(err, context.Canceled) {
			t.Fatalf("watch with a cancelled context: %v", err)
		}
		_, stop, err = s.Watch(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if n := subscribers(t, c, "NUMSUB", "submitonce:k"); n != 1 {
			t.Fatalf("%d have subscribed when Watch has returned, want 1", n)
		}
		stop()
	}
}

func TestWatchDoesNotWaitForAHangingServer(t *testing.T) {
	server := testserver.StartRedis(t)
	proxy := testserver.StartProxy(t, server.Addr)
	s := open(t, client(t, &redis.Options{Addr: proxy.Addr}), "")
	watch(t, s, "k")
	proxy.Blackhole(true)
	began := time.Now()
	_, _, err := s.Watch(t.Context(), "k2")
	if took := time.Since(began); err == nil || took > 5*time.Second {
		t.Errorf("watch on a line that is dead = %v after %v, want an error after a second", err, took)
	}
	proxy.Blackhole(false)
	proxy.Cut()
	until(t, "a watch that succeeds", func() bool {
		_, stop, err := s.Watch(t.Context(), "k2")
		if err == nil {
			stop()
		}
		return err == nil
	})
}

func TestClusterWatchersSurviveLostConnections(t *testing.T) {
	cluster := testserver.StartRedisCluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer func() { _ = c.Close() }()
	s := open(t, c, "")
	nodes := clients(t, cluster)
	const keys = 20 // in many slots of each node
	var changed [keys]<-chan struct{}
	for i := range changed {
		changed[i] = watch(t, s, strconv.Itoa(i))
	}
	for _, node := range nodes {
		if err := node.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range changed {
		wait(t, changed[i], "the loss of the connection")
		until(t, "a new subscription", func() (subscribed bool) {
			for _, node := range nodes {
				subscribed = subscribed || subscribers(t, node, "SHARDNUMSUB", "submitonce:"+strconv.Itoa(i)) > 0
			}
			return subscribed
		})
	}
	for i := range changed {
		select { // what it was told when it had subscribed anew
		case <-changed[i]:
		case <-time.After(20 * time.Millisecond):
		}
		_, h := claim(t, s, strconv.Itoa(i), 1)
		seal(t, h, "r")
		wait(t, changed[i], "the seal")
	}
}

func TestWatchersFollowASlot(t *testing.T) {
	cluster := testserver.StartRedisCluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer func() { _ = c.Close() }()
	s := open(t, c, "")
	nodes := clients(t, cluster)
	_, h := claim(t, s, "k", 1)
	changed := watch(t, s, "k")
	home := func() int {
		for i, node := range nodes {
			if subscribers(t, node, "SHARDNUMSUB", "submitonce:k") > 0 {
				return i
			}
		}
		return -1
	}
	first := home()
	if err := cluster.MoveSlot(t.Context(), "submitonce:k"); err != nil {
		t.Fatal(err)
	}
	wait(t, changed, "the move")
	until(t, "a subscription at the other node", func() bool { n := home(); return n >= 0 && n != first })
	select { // what it was told when it had subscribed anew
	case <-changed:
	case <-time.After(20 * time.Millisecond):
	}
	seal(t, h, "r")
	wait(t, changed, "the seal")
}

func clients(t testing.TB, cluster *testserver.RedisCluster) (nodes []*redis.Client) {
	t.Helper()
	for _, n := range cluster.Nodes {
		nodes = append(nodes, client(t, &redis.Options{Addr: n.Addr}))
	}
	return nodes
}
