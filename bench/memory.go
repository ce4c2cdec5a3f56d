package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
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
			Note: "200 bytes of JSON in; 201, three headers and 300 bytes out; no network. The goal is that of net/http.",
		}
		for i, f := range frameworks {
			goal := kind.goal
			if i > 0 {
				goal = Goal{}
			}
			w.Contenders = append(w.Contenders, bare(f), ours(f, kind.fresh, goal))
		}
		w.Contenders = append(w.Contenders, overFiber(kind.fresh)...)
		ws = append(ws, w)
	}
	return append(ws, tokenWorkload())
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
