package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/redisstore"
)

func TestOnlyWhatReplicasHaveCounts(t *testing.T) {
	master := testserver.StartRedis(t)
	replica := testserver.StartRedis(t, "--replicaof", strings.Replace(master.Addr, ":", " ", 1))
	s, err := redisstore.New(client(t, &redis.Options{Addr: master.Addr}), redisstore.Config{
		Replicas: 1, ReplicasTimeout: 300 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	c := replay.Claim{Key: "k", Owner: owner(1), Lease: lease}
	var hold replay.Hold
	until(t, "a claim with a replica that follows", func() bool { // it takes a moment to connect
		_, hold, err = s.Claim(t.Context(), c)
		return err == nil
	})

	// The replica stands still, though its connection still looks well.
	replica.Pause()
	if _, _, err := s.Claim(t.Context(), replay.Claim{Key: "k2", Owner: owner(1), Lease: lease}); !unacknowledged(err) {
		t.Errorf("a claim that no replica has: %v, want that too few have acknowledged", err)
	}
	for range 2 { // the second finds the first's record
		if err := hold.Seal(t.Context(), []byte("r"), retention); !unacknowledged(err) {
			t.Errorf("a seal that no replica has: %v, want that too few have acknowledged", err)
		}
	}
	replica.Resume()
	if err := hold.Seal(t.Context(), []byte("r"), retention); err != nil {
		t.Errorf("a seal that a replica has: %v", err)
	}
	done(t, s, "k", "r")
}

func TestReplicasAreWaitedForWhereASlotHasMovedTo(t *testing.T) {
	cluster := testserver.StartRedisCluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer func() { _ = c.Close() }()
	s, err := redisstore.New(c, redisstore.Config{Replicas: 1, ReplicasTimeout: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, what := range []string{"before", "after"} {
		// This cluster has no replicas, so that the server's no is the proof.
		_, _, err := s.Claim(t.Context(), replay.Claim{Key: "k", Owner: owner(1), Lease: lease})
		if !unacknowledged(err) {
			t.Errorf("claim %s the move: %v, want that too few have acknowledged", what, err)
		}
		if what == "before" {
			if err := cluster.MoveSlot(t.Context(), "submitonce:k"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func unacknowledged(err error) bool {
	return err != nil && strings.Contains(err.Error(), "too few replicas have acknowledged: 0 of 1")
}

// until calls f until it is true.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	for !f() {
		select {
		case <-ctx.Done():
			t.Fatalf("20 s without %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
