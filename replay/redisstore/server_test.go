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

func TestClientsThatWouldRunHandlersTwiceAreRefused(t *testing.T) {
	addrs := []string{"127.0.0.1:1"}
	for name, c := range map[string]redis.UniversalClient{
		"Ring":     redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addrs[0]}}),
		"replicas": redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ReadOnly: true}),
		"lag":      redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, RouteByLatency: true}),
	} {
		if s, err := redisstore.New(c, redisstore.Config{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: New = %v, %v; want an error that says %q", name, s, err, name)
		}
		_ = c.Close()
	}
}

func TestServersBeforeRedis7(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	s.AsBeforeRedis7()
	_, h := claim(t, s, "k", 1)
	if rec, h := claim(t, s, "k", 2); h != nil || rec.State != replay.Pending || rec.LeaseLeft <= 0 {
		t.Errorf("a second claim: %+v, hold %v; want pending", rec, h != nil)
	}
	seal(t, h, "r")
	done(t, s, "k", "r")

	// Without flags of scripts, a full server cannot take an outcome. What it can
	// do is to let nothing run again.
	_, h = claim(t, s, "full", 1)
	setMemory := func(limit string) {
		t.Helper()
		if err := c.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
	}
	setMemory("1")
	if err := h.Seal(t.Context(), []byte("r"), retention); !errors.Is(err, replay.ErrStoreFull) {
		t.Errorf("seal on a full server: %v, want ErrStoreFull", err)
	}
	setMemory("0")
	shorten(t, c, 2*lease+time.Minute)
	if rec, h := claim(t, s, "full", 2); h != nil || rec.State != replay.Pending {
		t.Errorf("after the lease, and a seal that did not fit: %+v, hold %v; want pending", rec, h != nil)
	}
	seal(t, h, "r")
	done(t, s, "full", "r")
}

func TestUserWithoutChannels(t *testing.T) {
	server := testserver.StartRedis(t)
	err := client(t, &redis.Options{Addr: server.Addr}).
		Do(t.Context(), "ACL", "SETUSER", "shop", "on", ">pw", "resetchannels", "~*", "+@all").Err()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := redisstore.New(client(t, &redis.Options{Addr: server.Addr, Username: "shop", Password: "pw"}),
		redisstore.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for range 3 {
		began := time.Now()
		if _, _, err := s.Watch(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("watch: %v, want NOPERM", err)
		}
		if took := time.Since(began); took > 700*time.Millisecond {
			t.Errorf("the watch failed after %v, want at once", took)
		}
	}
	for _, key := range []string{"a", "b"} {
		_, h := claim(t, s, key, 1)
		seal(t, h, key)
		done(t, s, key, key)
	}
	_, h := claim(t, s, "c", 1)
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	if n := strings.Count(log.String(), "refuses PUBLISH"); n != 1 {
		t.Errorf("logged %d times that PUBLISH is refused, want once:\n%s", n, &log)
	}
}

func TestFlushedServerEndsHolds(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	for _, claimed := range []bool{false, true} {
		_, h := claim(t, s, "k", 1)
		if err := c.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if claimed {
			_, other := claim(t, s, "k", 2)
			defer done(t, s, "k", "theirs")
			defer seal(t, other, "theirs")
		}
		if err := h.Extend(t.Context(), lease); !errors.Is(err, replay.ErrLeaseLost) {
			t.Errorf("extend after a flush: %v, want ErrLeaseLost", err)
		}
		if err := h.Seal(t.Context(), []byte("ours"), retention); !errors.Is(err, replay.ErrLeaseLost) {
			t.Errorf("seal after a flush: %v, want ErrLeaseLost", err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Errorf("release after a flush: %v", err)
		}
	}
}

func TestWhatWasDoneIsForgottenWithItsRecord(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	_, h := claim(t, s, "k", 1)
	seal(t, h, "first")
	done(t, s, "k", "first")
	if err := c.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	rec, h := claim(t, s, "k", 2)
	if h == nil || rec.Attempt != 1 {
		t.Fatalf("claim after a flush: %+v, hold %v; want attempt 1 won", rec, h != nil)
	}
	if rec, h := claim(t, s, "k", 3); h != nil || rec.State != replay.Pending {
		t.Errorf("claim of what is pending again: %+v, hold %v", rec, h != nil)
	}
	seal(t, h, "second")
	done(t, s, "k", "second")
}

// A claim looks at the life left and at the record by two commands. What another
// client does between the two must not be mistaken.
func TestRecordsThatComeBetweenTwoCommands(t *testing.T) {
	server := testserver.StartRedis(t)
	other := open(t, client(t, &redis.Options{Addr: server.Addr}), "")
	var between func()
	c := client(t, &redis.Options{Addr: server.Addr})
	c.AddHook(splitter{&between})
	s := open(t, c, "")
	s.Wait()               // it asks the server something in the background
	claim(t, s, "warm", 1) // a connection begins with a pipeline, too

	between = func() { claim(t, other, "k", 1) }
	if rec, h := claim(t, s, "k", 2); h != nil || rec.State != replay.Pending || rec.LeaseLeft < lease-5*time.Second {
		t.Errorf("claim: %+v, hold %v; want pending, with the whole lease left", rec, h != nil)
	}
	between = func() { claim(t, other, "k2", 1) }
	rec, err := s.Look(t.Context(), "k2")
	if err != nil || rec.State != replay.Pending || rec.LeaseLeft < lease-5*time.Second {
		t.Errorf("look: %+v, %v; want pending, with the whole lease left", rec, err)
	}
	_, h := claim(t, other, "k3", 1)
	between = func() { seal(t, h, "r") }
	done(t, s, "k3", "r")
}

// A splitter calls a function after the first command of each pipeline, once.
type splitter struct{ between *func() }

func (splitter) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (splitter) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (s splitter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		f := *s.between
		if *s.between = nil; f == nil {
			return next(ctx, cmds)
		}
		if err := next(ctx, cmds[:1]); err != nil {
			return err
		}
		f()
		return next(ctx, cmds[1:])
	}
}

func TestRecordsAreSmall(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	used := func() int64 {
		t.Helper()
		stats, err := c.Do(t.Context(), "MEMORY", "STATS").Result()
		if err != nil {
			t.Fatal(err)
		}
		return stats.(map[any]any)["dataset.bytes"].(int64) + stats.(map[any]any)["db.0"].(map[any]any)["overhead.hashtable.main"].(int64) +
			stats.(map[any]any)["db.0"].(map[any]any)["overhead.hashtable.expires"].(int64)
	}
	_, h := claim(t, s, "first", 1)
	seal(t, h, "r")
	before := used()
	const records = 4000
	for range records {
		_, h := claim(t, s, tokenKey(), 1)
		seal(t, h, strings.Repeat("x", 300))
	}
	if each := (used() - before) / records; each > 700 {
		t.Errorf("%d bytes a record, with a response of 300; want at most 700", each)
	} else {
		t.Logf("%d bytes a record, with a response of 300", each)
	}
}

func TestBracesStayOutOfKeys(t *testing.T) {
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	keys := []string{"{a}b", "{a}c", "a}b{", "}a{"}
	for _, key := range keys {
		_, h := claim(t, s, key, 1)
		seal(t, h, key)
	}
	for _, key := range keys {
		done(t, s, key, key)
	}
	for _, name := range c.Keys(t.Context(), "*").Val() {
		if strings.ContainsAny(name, "{}") {
			t.Errorf("the key %q has braces: a client would choose the slot", name)
		}
	}
}
