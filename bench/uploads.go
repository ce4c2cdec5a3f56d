package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/submitonce/submitonce/middleware/nethttp"
)

// A zeroReader gives n zeros and keeps none.
type zeroReader struct{ n int64 }

func (z *zeroReader) Read(p []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.n)
	clear(p[:n])
	z.n -= n
	return int(n), nil
}

// uploads compares large bodies with one pass of SHA-256 over the same bytes.
func uploads(ctx context.Context, sc scale) ([]Fact, error) {
	store, err := newMemstore()
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	g, tokens, err := newGuard(store)
	if err != nil {
		return nil, err
	}
	plain := http.Handler(http.HandlerFunc(order))
	guarded := nethttp.Middleware(g)(plain)
	var facts []Fact
	for _, size := range []int64{1 << 20, 100 << 20} {
		var bare, hash, full, grown []float64
		serve := func(app http.Handler) (took, allocated float64) {
			r, _ := request(tokens.Issue("", "").Value)
			r.Body, r.ContentLength = io.NopCloser(&zeroReader{size}), size
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			app.ServeHTTP(&sink{h: http.Header{}}, r)
			took = float64(time.Since(began))
			runtime.ReadMemStats(&after)
			return took, float64(after.TotalAlloc - before.TotalAlloc)
		}
		err := turns(ctx, sc.of(sc.rounds, 3), func() error {
			took, _ := serve(plain)
			bare = append(bare, took)
			return nil
		}, func() error {
			h := sha256.New()
			began := time.Now()
			_, err := io.Copy(io.Discard, io.TeeReader(&zeroReader{size}, h)) // read as the handler reads
			hash = append(hash, float64(time.Since(began)))
			return err
		}, func() error {
			took, allocated := serve(guarded)
			full, grown = append(full, took), append(grown, allocated)
			return nil
		})
		if err != nil {
			return nil, err
		}
		var ratios []float64
		for i := range bare {
			ratios = append(ratios, (full[i]-bare[i])/(hash[i]-bare[i]))
		}
		ratio, allocated := spreadOf(ratios), spreadOf(grown)
		name := fmt.Sprintf("%d MiB: ", size>>20)
		facts = append(facts,
			Fact{What: name + "handler alone", Value: span(spreadOf(bare), nanos)},
			Fact{What: name + "SHA-256", Value: span(spreadOf(hash), nanos)},
			Fact{What: name + "through the guard", Value: span(spreadOf(full), nanos)},
			Fact{What: name + "added, over the pass of SHA-256", Value: span(ratio, times)},
			Fact{What: name + "allocated on the way", Value: span(allocated, bytesText), Goal: "< 1 MiB", Missed: allocated.Median >= 1<<20})
		if size == 100<<20 {
			facts[len(facts)-2].Goal, facts[len(facts)-2].Missed = "≤ 1.00 ×", ratio.Median >= 1.005
		}
	}
	return facts, nil
}
