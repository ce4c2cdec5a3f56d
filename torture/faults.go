package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// A Fault is something that goes wrong. It puts things right again before it
// returns, since a run is about what happens meanwhile.
type Fault struct {
	Name  string
	Redis bool // only where there is a Redis
	Do    func(ctx context.Context, r *Run) error
}

// faults are what a run draws from.
var faults = []Fault{
	{"kill -9 of an app", false, func(ctx context.Context, r *Run) error {
		return r.anyApp().restart(ctx)
	}},
	{"app paused beyond its lease", false, func(ctx context.Context, r *Run) error {
		r.anyApp().pause(ctx, 2*runLease)
		return nil
	}},
	{"PostgreSQL backends killed", false, func(ctx context.Context, r *Run) error {
		const kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity" +
			" WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND random() < 0.5"
		_, err := r.servers.pool.Exec(ctx, kill)
		return err
	}},
	{"PostgreSQL killed and started", false, func(ctx context.Context, r *Run) error {
		r.servers.postgres.Kill()
		return r.servers.postgres.Start(ctx)
	}},
	{"PostgreSQL paused", false, func(ctx context.Context, r *Run) error {
		r.servers.postgres.Pause()
		sleep(ctx, rand.N(runLease))
		r.servers.postgres.Resume()
		return nil
	}},
	{"Redis emptied", true, func(ctx context.Context, r *Run) error {
		c := r.servers.redis.Client()
		defer func() { _ = c.Close() }()
		return c.FlushAll(ctx).Err()
	}},
	{"Redis killed and started empty", true, func(ctx context.Context, r *Run) error {
		r.servers.redis.Kill()
		sleep(ctx, rand.N(time.Second))
		return r.servers.redis.Start(ctx)
	}},
	{"Redis paused", true, func(ctx context.Context, r *Run) error {
		r.servers.redis.Pause()
		sleep(ctx, rand.N(2*runLease))
		r.servers.redis.Resume()
		return nil
	}},
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// breakThings draws one fault after another until ctx ends. It counts them, and
// returns the first that could not be put right.
func (r *Run) breakThings(ctx context.Context) error {
	for ctx.Err() == nil {
		f := faults[rand.IntN(len(faults))]
		if f.Redis && !r.Mode.redis() {
			continue
		}
		// A fault that has begun is brought to its end: a server stays dead or
		// paused otherwise.
		if err := f.Do(context.WithoutCancel(ctx), r); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		r.mu.Lock()
		r.Faults[f.Name]++
		r.mu.Unlock()
		sleep(ctx, 200*time.Millisecond+rand.N(800*time.Millisecond))
	}
	return nil
}
