package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/redisstore"
)

const (
	lease     = 30 * time.Second
	retention = time.Hour
)

func owner(n byte) (o replay.Owner) {
	o[0] = n
	return o
}

func claim(t testing.TB, s replay.Store, key string, n byte) (replay.Record, replay.Hold) {
	t.Helper()
	rec, hold, err := s.Claim(t.Context(), replay.Claim{Key: key, Owner: owner(n), Lease: lease})
	if err != nil {
		t.Fatalf("claim of %s: %v", key, err)
	}
	return rec, hold
}

func seal(t testing.TB, h replay.Hold, response string) {
	t.Helper()
	if err := h.Seal(t.Context(), []byte(response), retention); err != nil {
		t.Fatalf("seal: %v", err)
	}
}

func done(t testing.TB, s replay.Store, key, response string) {
	t.Helper()
	rec, hold := claim(t, s, key, 99)
	if hold != nil || rec.State != replay.Done || string(rec.Response) != response {
		t.Errorf("%s: hold %v, %v %q; want done %q", key, hold != nil, rec.State, rec.Response, response)
	}
}

func client(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestEveryStateHasATimeToLive(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	check := func(state string, atMost time.Duration) {
		t.Helper()
		left, err := c.PTTL(t.Context(), "submitonce:k").Result()
		if err != nil || left <= atMost-10*time.Second || left > atMost {
			t.Errorf("%s: %v to live (error %v), want about %v", state, left, err, atMost)
		}
	}
	_, h := claim(t, s, "k", 1)
	check("claimed", lease+time.Minute)
	if err := h.Extend(t.Context(), 2*lease); err != nil {
		t.Fatal(err)
	}
	check("extended", 2*lease+time.Minute)
	seal(t, h, "r")
	check("sealed", retention)

	shorten(t, c, retention)
	_, _ = claim(t, s, "k", 1)
	shorten(t, c, lease+time.Second)
	if rec, h := claim(t, s, "k", 2); h == nil || rec.Attempt != 2 {
		t.Fatalf("takeover: %+v, hold %v", rec, h != nil)
	}
	check("taken over", lease+time.Minute)
}

func TestRoundTrips(t *testing.T) {
	server := testserver.StartRedis(t)
	proxy := testserver.StartProxy(t, server.Addr)
	s := open(t, client(t, &redis.Options{Addr: proxy.Addr, PoolSize: 1}), "")
	_, h := claim(t, s, "warm", 1)
	seal(t, h, "r") // connection and scripts are there now
	_, h = claim(t, s, "warm2", 1)
	_ = h.Release(t.Context())

	trips := func(what string, want int64, f func()) {
		t.Helper()
		before := proxy.Trips()
		f()
		if n := proxy.Trips() - before; n != want {
			t.Errorf("%s: %d round trips, want %d", what, n, want)
		}
	}
	trips("first submit", 2, func() {
		_, h := claim(t, s, "k", 1)
		seal(t, h, "r")
	})
	trips("duplicate of a done record", 1, func() { done(t, s, "k", "r") })
	_, h = claim(t, s, "p", 1)
	trips("duplicate of a pending record", 1, func() {
		if rec, h := claim(t, s, "p", 2); h != nil || rec.LeaseLeft < lease-5*time.Second {
			t.Errorf("pending: %+v, hold %v", rec, h != nil)
		}
	})
	trips("release", 1, func() { _ = h.Release(t.Context()) })
}

func TestScriptFlush(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	for _, key := range []string{"a", "b"} {
		_, h := claim(t, s, key, 1)
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		seal(t, h, key)
		done(t, s, key, key)
	}
}

func TestConnectionsKilled(t *testing.T) {
	server := testserver.StartRedis(t)
	admin := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, client(t, &redis.Options{Addr: server.Addr}), "")
	_, h := claim(t, s, "k", 1)
	changed, stop, err := s.Watch(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, kind := range []string{"pubsub", "normal"} {
		if err := admin.Do(t.Context(), "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, changed, "the loss of the connection")
	seal(t, h, "r") // go-redis takes a new connection
	done(t, s, "k", "r")

	// The subscription is there again.
	_, h = claim(t, s, "k2", 1)
	changed2, stop2, err := s.Watch(t.Context(), "k2")
	if err != nil {
		t.Fatal(err)
	}
	defer stop2()
	seal(t, h, "r")
	wait(t, changed2, "the seal")
}

func wait(t testing.TB, changed <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		t.Fatalf("the watcher has not been told of %s", what)
	}
}

func TestFailOverBySentinel(t *testing.T) {
	sentinel := testserver.StartRedisSentinel(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: sentinel.Name, SentinelAddrs: []string{sentinel.Addr}, MaxRetries: 1})
	defer func() { _ = c.Close() }()
	s, err := redisstore.New(c, redisstore.Config{Replicas: 1, ReplicasTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	_, pending := claim(t, s, "pending", 1)
	_, h := claim(t, s, "done", 1)
	seal(t, h, "r")
	sentinel.Master.Kill()

	s2 := open(t, c, "") // no replica is left to acknowledge
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		if _, err := s2.Look(ctx, "done"); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatalf("no answer after the fail-over: %v", err)
		}
	}
	done(t, s2, "done", "r")
	if rec, h := claim(t, s2, "pending", 2); h != nil || rec.State != replay.Pending {
		t.Errorf("the acknowledged claim after the fail-over: %v, hold %v; want pending", rec.State, h != nil)
	}
	if err := pending.Seal(t.Context(), []byte("late"), retention); err == nil {
		t.Error("a seal that no replica acknowledged succeeded, with Replicas 1")
	}
}

func TestMovedSlot(t *testing.T) {
	cluster := testserver.StartRedisCluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer func() { _ = c.Close() }()
	s := open(t, c, "")
	_, h := claim(t, s, "k", 1)
	if err := cluster.MoveSlot(t.Context(), "submitonce:k"); err != nil {
		t.Fatal(err)
	}
	seal(t, h, "r")
	done(t, s, "k", "r")
}

func TestFullServerRefusesClaimsAndTakesSeals(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	_, h := claim(t, s, "k", 1)
	seal(t, h, "first")
	_, h = claim(t, s, "running", 1)
	if err := c.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil { // it has more than that
		t.Fatal(err)
	}
	_, _, err := s.Claim(t.Context(), replay.Claim{Key: "new", Owner: owner(1), Lease: lease})
	if !errors.Is(err, replay.ErrStoreFull) {
		t.Errorf("a claim on a full server: %v, want ErrStoreFull", err)
	}
	seal(t, h, "second")
	done(t, s, "running", "second")
	done(t, s, "k", "first")
}

func TestHangingServerIsLeftInTime(t *testing.T) {
	server := testserver.StartRedis(t)
	cluster := testserver.StartRedisCluster(t)
	proxy := testserver.StartProxy(t, server.Addr)
	clusterClient := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer func() { _ = clusterClient.Close() }()
	for name, c := range map[string]redis.UniversalClient{
		"heeds contexts": client(t, &redis.Options{Addr: proxy.Addr, ContextTimeoutEnabled: true}),
		"default":        client(t, &redis.Options{Addr: proxy.Addr}),
		"cluster":        clusterClient,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, c, "")
			_, h := claim(t, s, name[:1], 1)
			hang := func(on bool) {
				for _, node := range cluster.Nodes {
					if on {
						node.Pause()
					} else {
						node.Resume()
					}
				}
				proxy.Blackhole(on)
				if !on {
					proxy.Cut() // the connections have lost their place
				}
			}
			hang(true)
			inTime := func(what string, f func(context.Context) error) {
				t.Helper()
				cancelled, cancel := context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, cancel)
				passed, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer stop()
				for _, ctx := range []context.Context{passed, cancelled} {
					began := time.Now()
					err := f(ctx)
					if took := time.Since(began); err == nil || took > 900*time.Millisecond {
						t.Errorf("%s = %v after %v, want an error after 100ms", what, err, took)
					}
				}
			}
			inTime("claim", func(ctx context.Context) error {
				_, _, err := s.Claim(ctx, replay.Claim{Key: "new" + name[:1], Owner: owner(1), Lease: lease})
				return err
			})
			inTime("look", func(ctx context.Context) error {
				_, err := s.Look(ctx, "k")
				return err
			})
			inTime("watch", func(ctx context.Context) error {
				_, _, err := s.Watch(ctx, "k")
				return err
			})
			inTime("extend", func(ctx context.Context) error { return h.Extend(ctx, lease) })
			inTime("seal", func(ctx context.Context) error { return h.Seal(ctx, []byte("r"), retention) })
			inTime("release", h.Release)
			hang(false)
			until(t, "a claim after the server has come back", func() bool {
				_, _, err := s.Claim(t.Context(), replay.Claim{Key: "k" + name[:1], Owner: owner(1), Lease: lease})
				return err == nil
			})
		})
	}
}

func TestEvictingPolicyIsWarnedOf(t *testing.T) {
	for policy, warned := range map[string]bool{"noeviction": false, "allkeys-lru": true, "volatile-ttl": true} {
		t.Run(policy, func(t *testing.T) {
			server := testserver.StartRedis(t, "--maxmemory", "10mb", "--maxmemory-policy", policy)
			var out bytes.Buffer
			s, err := redisstore.New(client(t, &redis.Options{Addr: server.Addr}), redisstore.Config{
				Logger: slog.New(slog.NewTextHandler(&out, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			s.Wait()
			_ = s.Close()
			if got := strings.Contains(out.String(), "may evict records"); got != warned {
				t.Errorf("warned: %v, want %v: %s", got, warned, &out)
			}
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	_, err := redisstore.New(nil, redisstore.Config{Prefix: "{a}", Replicas: -1, ReplicasTimeout: -1})
	for _, text := range []string{"client is nil", "Config.Prefix", "Config.Replicas is", "Config.ReplicasTimeout"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("New = %v, want it to say %q", err, text)
		}
	}
	c := client(t, &redis.Options{Addr: "127.0.0.1:1", ReadTimeout: time.Second})
	_, err = redisstore.New(c, redisstore.Config{Replicas: 1, ReplicasTimeout: time.Second})
	if err == nil || !strings.Contains(err.Error(), "ReadTimeout, 1s") {
		t.Errorf("New = %v, want it to say that ReplicasTimeout is too long", err)
	}
}

func TestForeignValueIsAnError(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	for _, value := range []string{"", "short", strings.Repeat("X", 40)} {
		if err := c.Set(t.Context(), "submitonce:k", value, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		_, h, err := s.Claim(t.Context(), replay.Claim{Key: "k", Owner: owner(1), Lease: lease})
		if err == nil || h != nil {
			t.Errorf("claim over %q: hold %v, error %v; want an error", value, h != nil, err)
		}
	}
}
