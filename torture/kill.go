package main

import (
	"context"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A Point is where in the life of a request its process is killed.
type Point string

// The points, in the order of a request's life.
const (
	BeforeClaim  Point = "before the claim"
	AfterClaim   Point = "after the claim"
	BeforeEffect Point = "in the handler, before its effect"
	AfterEffect  Point = "in the handler, after its effect"
	BeforeSeal   Point = "before the seal"
	AfterSeal    Point = "after the seal, before the answer"
)

// Points lists them.
var Points = []Point{BeforeClaim, AfterClaim, BeforeEffect, AfterEffect, BeforeSeal, AfterSeal}

// killHeader marks the request at which the process is to die.
const killHeader = "X-Kill"

type killKey struct{}

// killAt ends the process as kill -9 does, if this is the point.
func killAt(c AppConfig, p Point, asked bool) {
	if asked && c.KillAt == p {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

// killLate carries the wish to be killed into the store's calls, and dies when
// the guard has answered, before a byte reaches the client.
func killLate(c AppConfig, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.Header.Get(killHeader) != ""
		killAt(c, BeforeClaim, asked)
		if asked {
			r = r.WithContext(context.WithValue(r.Context(), killKey{}, true))
			w = &dyingWriter{ResponseWriter: w, c: c}
		}
		next.ServeHTTP(w, r)
	})
}

// A dyingWriter dies at the first byte of the answer.
type dyingWriter struct {
	http.ResponseWriter
	c AppConfig
}

func (w *dyingWriter) WriteHeader(status int) {
	killAt(w.c, AfterSeal, true)
	w.ResponseWriter.WriteHeader(status)
}

// killing returns a store that dies after its claim or before its seal.
func killing(s replay.Store, c AppConfig) replay.Store {
	return &killingStore{Store: s, c: c}
}

type killingStore struct {
	replay.Store
	c AppConfig
}

func (s *killingStore) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	rec, hold, err := s.Store.Claim(ctx, c)
	if hold == nil {
		return rec, hold, err
	}
	asked := ctx.Value(killKey{}) != nil
	killAt(s.c, AfterClaim, asked)
	return rec, wrapHold(hold, func(h replay.Hold) replay.Hold { return &killingHold{h, s.c, asked} }), err
}

// Watch passes the watcher of the store within on.
func (s *killingStore) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	return watch(ctx, s.Store, key)
}

type killingHold struct {
	replay.Hold
	c     AppConfig
	asked bool
}

func (h *killingHold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	killAt(h.c, BeforeSeal, h.asked)
	return h.Hold.Seal(ctx, response, retention)
}

// wrapHold wraps a hold and keeps it a Lender if it is one.
func wrapHold(h replay.Hold, wrap func(replay.Hold) replay.Hold) replay.Hold {
	w := wrap(h)
	if l, ok := h.(replay.Lender); ok {
		return &lendingHold{w, l}
	}
	return w
}

type lendingHold struct {
	replay.Hold
	lender replay.Lender
}

func (h *lendingHold) Lend(ctx context.Context) context.Context { return h.lender.Lend(ctx) }

func watch(ctx context.Context, s replay.Store, key string) (<-chan struct{}, func(), error) {
	if w, ok := s.(replay.Watcher); ok {
		return w.Watch(ctx, key)
	}
	return make(chan struct{}), func() {}, nil
}
