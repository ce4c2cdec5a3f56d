package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"
	"time"
)

// memoryWorkloads call handlers directly, without a network.
func memoryWorkloads() []Workload {
	var ws []Workload
	for _, kind := range []struct {
		name  string
		fresh bool
		goal  Goal
	}{
		{"first submit", true, Goal{Added: 2 * time.Microsecond, Allocs: 12}},
		{"replay", false, Goal{Added: time.Microsecond, Allocs: 8}},
	} {
		w := Workload{
			Name: "memory: " + kind.name, Slice: 50 * time.Millisecond, Fresh: true, Adds: true,
			Note: "200 bytes of JSON in; 201, three headers and 300 bytes out; no network. The goal is that of net/http. " +
				"The least is what no guard with signed tokens and fingerprints can leave out: one HMAC, one SHA-256, a map, a copy.",
		}
		for i, f := range frameworks {
			goal := kind.goal
			if i > 0 {
				goal = Goal{}
			}
			w.Contenders = append(w.Contenders, bare(f), ours(f, kind.fresh, goal))
		}
		w.Contenders = append(w.Contenders, leastWork(kind.fresh))
		w.Contenders = append(w.Contenders, overFiber(kind.fresh)...)
		ws = append(ws, w)
	}
	return append(ws, tokenWorkload())
}

// leastWork is the work that no guard of this kind can leave out: one HMAC for
// the token, one SHA-256 over the body, a map behind a mutex, and a copy of the
// response. It keeps none of the promises about leases, waiters and bounds.
func leastWork(fresh bool) Contender {
	return Contender{
		Name: "net/http, the least there is to do", Floor: "net/http, bare handler",
		Open: func(_ context.Context, ops int) (opened, error) {
			n := 1
			if fresh {
				n = ops
			}
			keys := make([]string, n)
			for i := range keys {
				keys[i] = claimOf(i).Key
			}
			l := &least{mac: hmac.New(sha256.New, newSecret()), records: map[string]leastRecord{}}
			return opened{func() (op, error) {
				r, again := request("")
				w := &sink{h: http.Header{}}
				return func(i int) error {
					again(keys[i%n])
					clear(w.h)
					return l.serve(w, r, keys[i%n])
				}, nil
			}, func() {}}, nil
		},
	}
}

type least struct {
	mac     hash.Hash // of one goroutine
	mu      sync.Mutex
	records map[string]leastRecord // guarded by mu
}

type leastRecord struct {
	fingerprint [sha256.Size]byte
	response    []byte
}

func (l *least) serve(w *sink, r *http.Request, key string) error {
	var sum [sha256.Size]byte
	var read [256]byte
	l.mac.Reset()
	_, _ = l.mac.Write([]byte(key)[:48])
	if !hmac.Equal(l.mac.Sum(sum[:0]), sum[:]) {
		return errors.New("a MAC is not its own")
	}
	n, err := io.ReadFull(r.Body, read[:])
	if n != len(in) {
		return fmt.Errorf("read %d bytes of %d: %w", n, len(in), err)
	}
	fingerprint := sha256.Sum256(read[:n])
	l.mu.Lock()
	rec, ok := l.records[key]
	l.mu.Unlock()
	if ok {
		if rec.fingerprint != fingerprint {
			return errors.New("another body")
		}
		copied := bytes.Clone(rec.response)
		respond(w.h, w.WriteHeader, func([]byte) (int, error) { return w.Write(copied[:len(out)]) })
		return nil
	}
	order(w, r)
	l.mu.Lock()
	l.records[key] = leastRecord{fingerprint, bytes.Clone(record)}
	l.mu.Unlock()
	return nil
}

// tokenWorkload measures tokens beside the one HMAC that each of them needs.
func tokenWorkload() Workload {
	const floor = "HMAC-SHA-256 of 48 bytes with a key that is set up"
	return Workload{
		Name: "token", Slice: 50 * time.Millisecond, Note: "One token, with a form and a subject.",
		Contenders: []Contender{
			{Name: floor, Open: func(context.Context, int) (opened, error) {
				return opened{func() (op, error) {
					mac := hmac.New(sha256.New, newSecret())
					text, sum := make([]byte, 48), make([]byte, 0, 32)
					return func(int) error {
						mac.Reset()
						_, _ = mac.Write(text)
						sum = mac.Sum(sum[:0])
						return nil
					}, nil
				}, func() {}}, nil
			}},
			{Name: "issue", Floor: floor, Open: func(context.Context, int) (opened, error) {
				tokens, err := newTokens(newSecret())
				return opened{same(func(int) error { tokens.Issue("checkout", "user-1"); return nil }), func() {}}, err
			}},
			{Name: "verify", Floor: floor, Open: func(context.Context, int) (opened, error) {
				tokens, err := newTokens(newSecret())
				if err != nil {
					return opened{}, err
				}
				tok := tokens.Issue("checkout", "user-1").Value
				return opened{same(func(int) error { _, err := tokens.Verify(tok, "checkout", "user-1"); return err }), func() {}}, nil
			}},
		},
	}
}
