package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/redisstore"
	"github.com/submitonce/submitonce/replay/storetest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func open(t testing.TB, client redis.UniversalClient, prefix string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(client, redisstore.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// shorten moves the ends of all records d closer.
func shorten(t testing.TB, client redis.Cmdable, d time.Duration) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		left, err := client.PTTL(ctx, k).Result()
		if err != nil {
			t.Fatal(err)
		}
		if err := client.PExpire(ctx, k, max(left-d, 0)).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConformance(t *testing.T) {
	server := testserver.StartRedis(t)
	newClient := func(t testing.TB) *redis.Client {
		c := server.Client()
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	storetest.Run(t, storetest.Harness{
		New:  func(t *testing.T) replay.Store { return open(t, newClient(t), "t:") },
		Peer: func(t *testing.T, _ replay.Store) replay.Store { return open(t, newClient(t), "t:") },
		Advance: func(t *testing.T, _ replay.Store, d time.Duration) {
			shorten(t, newClient(t), d)
		},
	})
}

func TestConformanceOnACluster(t *testing.T) {
	cluster := testserver.StartRedisCluster(t)
	newClient := func(t testing.TB) *redis.ClusterClient {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	storetest.Run(t, storetest.Harness{
		New:  func(t *testing.T) replay.Store { return open(t, newClient(t), "t:") },
		Peer: func(t *testing.T, _ replay.Store) replay.Store { return open(t, newClient(t), "t:") },
		Advance: func(t *testing.T, _ replay.Store, d time.Duration) {
			for _, n := range cluster.Nodes {
				shorten(t, n.Client(), d)
			}
		},
	})
}
