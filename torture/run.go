package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	runApps    = 3
	runClients = 12
	runLease   = time.Second
)

// A Run submits and breaks things for a while, and then counts.
type Run struct {
	Mode  Mode
	For   time.Duration
	Plant string // a bug to be found, for a run that is to fail

	servers *Servers
	apps    []*Process
	dir     string // of the histories

	mu      sync.Mutex
	Faults  map[string]int // guarded by mu
	submits []*Submit      // guarded by mu
}

// Execute runs the mode against servers and returns what came of it.
func (r *Run) Execute(ctx context.Context, servers *Servers) (*Report, error) {
	r.servers, r.Faults = servers, make(map[string]int)
	if err := servers.empty(ctx); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "submitonce-torture-")
	if err != nil {
		return nil, err
	}
	r.dir = dir
	defer func() { _ = os.RemoveAll(dir) }()
	defer func() {
		for _, p := range r.apps {
			p.kill()
		}
	}()
	for i := range runApps {
		c := servers.app(r.Mode)
		c.History = filepath.Join(dir, fmt.Sprintf("app%d", i))
		c.Lease, c.Work, c.Plant = runLease, 150*time.Millisecond, r.Plant
		p, err := startProcess(ctx, c)
		if err != nil {
			return nil, err
		}
		r.apps = append(r.apps, p)
	}

	breaking, stop := context.WithTimeout(ctx, r.For)
	defer stop()
	var wg sync.WaitGroup
	var broke error
	wg.Go(func() { broke = r.breakThings(breaking) })
	for range runClients {
		wg.Go(func() { r.submit(ctx, breaking) })
	}
	wg.Wait()
	if broke != nil {
		return nil, broke
	}
	return r.report(ctx)
}

// submit sends one token after another until things are no longer broken. What
// has been begun is brought to its end, so that every token has its outcome.
func (r *Run) submit(ctx, breaking context.Context) {
	client := newClient()
	defer client.CloseIdleConnections()
	tokens, err := newTokens()
	if err != nil {
		panic(err) // the secret is long enough
	}
	for breaking.Err() == nil {
		s := &Submit{Token: tokens.Issue("", "").Value}
		r.mu.Lock()
		r.submits = append(r.submits, s)
		r.mu.Unlock()
		patient, cancel := context.WithTimeout(ctx, 90*time.Second)
		s.duplicate(patient, client, func() string { return r.anyApp().config.Addr }, 1+rand.IntN(5))
		cancel()
	}
}

func (r *Run) anyApp() *Process { return r.apps[rand.IntN(len(r.apps))] }
