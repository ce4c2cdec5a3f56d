package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
)

// A countingStore counts claims.
type countingStore struct {
	replay.Store
	claims atomic.Int64
}

func (s *countingStore) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	s.claims.Add(1)
	return s.Store.Claim(ctx, c)
}

const (
	duplicates = 1000
	workTime   = 50 * time.Millisecond
)

// duplicatesAtOnce sends duplicates of a handler that takes its time.
func duplicatesAtOnce(ctx context.Context, sc scale) ([]Fact, error) {
	var ours, peer []float64
	var runs, claims, peerRuns int64
	err := turns(ctx, sc.of(sc.rounds, 3), func() error {
		mem, err := newMemstore()
		if err != nil {
			return err
		}
		defer func() { _ = mem.Close() }()
		store := &countingStore{Store: mem}
		g, tokens, err := newGuard(store)
		if err != nil {
			return err
		}
		var ran atomic.Int64
		app := nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ran.Add(1)
			time.Sleep(workTime)
			order(w, r)
		}))
		tok := tokens.Issue("", "").Value
		took, err := together(func() error {
			r, again := request(tok)
			again(tok)
			w := &sink{h: http.Header{}}
			app.ServeHTTP(w, r)
			if w.status != http.StatusCreated {
				return fmt.Errorf("status %d", w.status)
			}
			return nil
		})
		ours = append(ours, float64(took))
		runs, claims = max(runs, ran.Load()), max(claims, store.claims.Load())
		return err
	}, func() error {
		var ran atomic.Int64
		app := fiberApp(true, func() { ran.Add(1); time.Sleep(workTime) })
		defer func() { _ = app.Shutdown() }()
		handler, key := app.Handler(), uuid()
		took, err := together(func() error { return fiberSubmit(handler, new(fasthttp.RequestCtx), key) })
		peer = append(peer, float64(took))
		peerRuns = max(peerRuns, ran.Load())
		return err
	})
	if err != nil {
		return nil, err
	}
	const most = workTime + 20*time.Millisecond
	took := spreadOf(ours)
	return []Fact{
		{What: "submitonce", Value: span(took, nanos), Goal: "≤ " + nanos(float64(most)), Missed: took.Median > float64(most)},
		{What: "submitonce: handler runs; claims in the store", Value: fmt.Sprintf("%d; %d", runs, claims), Goal: "1; 1", Missed: runs != 1 || claims != 1},
		{What: "fiber, middleware/idempotency", Value: span(spreadOf(peer), nanos)},
		{What: "fiber: handler runs", Value: fmt.Sprint(peerRuns)},
	}, nil
}

// together calls f on all duplicates' goroutines at once, and returns how long
// it takes until the last has ended.
func together(f func() error) (time.Duration, error) {
	start := make(chan struct{})
	errs := make(chan error, duplicates)
	var ready sync.WaitGroup
	for range duplicates {
		ready.Add(1)
		go func() {
			ready.Done()
			<-start
			errs <- f()
		}()
	}
	ready.Wait()
	began := time.Now()
	close(start)
	var failed error
	for range duplicates {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return time.Since(began), failed
}
