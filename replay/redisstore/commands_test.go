package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
)

// A recorder notes the commands that a client sends.
type recorder struct {
	mu   sync.Mutex
	sent []string
}

func (r *recorder) note(cmds ...redis.Cmder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cmd := range cmds {
		said := cmd.Name()
		if slices.Contains(cmd.Args(), any("ifeq")) {
			said += " ifeq"
		}
		r.sent = append(r.sent, said)
	}
}

// since returns what was sent since it was last asked.
func (r *recorder) since() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := strings.Join(r.sent, ", ")
	r.sent = nil
	return sent
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.note(cmd)
		return next(ctx, cmd)
	}
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.note(cmds...)
		return next(ctx, cmds)
	}
}

// recorded returns a store on a server of its own, and what its client sends.
func recorded(t *testing.T) (replay.Store, *recorder, *redis.Client) {
	t.Helper()
	server := testserver.StartRedis(t)
	c := client(t, &redis.Options{Addr: server.Addr})
	s := open(t, c, "")
	s.Wait() // it asks the server something in the background
	_, h := claim(t, s, "warm", 1)
	seal(t, h, "r") // what the server can do is known now
	r := new(recorder)
	c.AddHook(r)
	return s, r, server.Client()
}

// compares reports whether the server has SET … IFEQ.
func compares(t *testing.T, c *redis.Client) bool {
	t.Helper()
	defer func() { _ = c.Close() }()
	err := c.Do(t.Context(), "set", "probe", "b", "ifeq", "a").Err()
	if err != nil && !errors.Is(err, redis.Nil) && !strings.Contains(err.Error(), "syntax error") {
		t.Fatal(err)
	}
	return errors.Is(err, redis.Nil)
}

func TestSealsByANativeCommandWhereThereIsOne(t *testing.T) {
	s, sent, probe := recorded(t)
	want := "evalsha"
	if compares(t, probe) {
		want = "set ifeq, publish"
	}
	for i := range 3 {
		_, h := claim(t, s, fmt.Sprint("k", i), 1)
		sent.since()
		seal(t, h, "r")
		if got := sent.since(); got != want {
			t.Errorf("seal %d sent %q, want %q", i+1, got, want)
		}
	}
}

func TestSealsThatFindNoClaimOfTheirsGoByScript(t *testing.T) {
	s, sent, probe := recorded(t)
	first := ""
	if compares(t, probe) {
		first = "set ifeq, publish, "
	}
	_, h := claim(t, s, "again", 1)
	seal(t, h, "first")
	sent.since()
	seal(t, h, "second") // a repetition: the answer to the first was lost, say
	if got := sent.since(); got != first+"evalsha" && got != first+"evalsha, eval" {
		t.Errorf("a repeated seal sent %q, want %q", got, first+"evalsha")
	}
	done(t, s, "again", "first")
}
