package tieredstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/submitonce/submitonce/replay"
)

var (
	_ replay.Store   = (*Store)(nil)
	_ replay.Watcher = (*Store)(nil)
	_ io.Closer      = (*Store)(nil)
)

// Defaults of [Config].
const (
	DefaultFrontRetention = 48 * time.Hour
	DefaultFrontTimeout   = 100 * time.Millisecond
)

// refillRetention is how long the front keeps what it has learnt from the back
// about a record sealed earlier. The back may forget that one soon, and the front
// must not outlive it by much.
const refillRetention = 10 * time.Minute

// A Config says how a [Store] uses its front. Its zero value is right for most.
type Config struct {
	// FrontRetention is how long the front keeps a sealed response, unless the
	// guard's retention is shorter. The default is 48 hours.
	FrontRetention time.Duration

	// FrontTimeout bounds each call of the front. The default is 100 ms.
	FrontTimeout time.Duration

	// OnFrontError is told of each failed call of the front, for metrics. It must
	// be quick and safe for concurrent use. The default is nil.
	OnFrontError func(call string, err error)

	// Logger hears when the front is given up and taken up again. The default is
	// slog.Default().
	Logger *slog.Logger
}

// A Store has a front and a back. It is safe for concurrent use.
type Store struct {
	front, back replay.Store
	c           Config
	breaker     breaker

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool // guarded by mu
}

// New returns a store, or all that is wrong with its arguments. It closes neither
// front nor back. Where the back is a [replay.Sweeper], sweep the back.
func New(front, back replay.Store, c Config) (*Store, error) {
	var errs []error
	for name, s := range map[string]replay.Store{"front": front, "back": back} {
		if s == nil {
			errs = append(errs, fmt.Errorf("tieredstore: the %s is nil", name))
		}
	}
	if c.FrontRetention < 0 {
		errs = append(errs, fmt.Errorf("tieredstore: Config.FrontRetention is %v: it has to be positive", c.FrontRetention))
	}
	if c.FrontTimeout < 0 {
		errs = append(errs, fmt.Errorf("tieredstore: Config.FrontTimeout is %v: it has to be positive", c.FrontTimeout))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c.FrontRetention = cmp.Or(c.FrontRetention, DefaultFrontRetention)
	c.FrontTimeout = cmp.Or(c.FrontTimeout, DefaultFrontTimeout)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	s := &Store{front: front, back: back, c: c}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close ends the store's watches. It closes neither front nor back, never fails,
// and may be called twice.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.running.Wait()
	return nil
}

// check is what each call begins with.
func (s *Store) check(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return replay.ErrClosed
	}
	return ctx.Err()
}

// ask makes one call of the front, if the front is not given up, and reports
// whether it succeeded.
func (s *Store) ask(ctx context.Context, call string, f func(context.Context) error) bool {
	if !s.breaker.allow() {
		return false
	}
	fctx, cancel := context.WithTimeout(ctx, s.c.FrontTimeout)
	defer cancel()
	err := f(fctx)
	if err != nil && ctx.Err() != nil {
		s.breaker.nothing() // the caller has left; that says nothing of the front
		return false
	}
	if errors.Is(err, replay.ErrLeaseLost) {
		s.breaker.succeeded()
		return false // it has lost what it had, and says so
	}
	if err == nil {
		if s.breaker.succeeded() {
			s.c.Logger.LogAttrs(ctx, slog.LevelInfo, "submitonce: the front of the store is back")
		}
		return true
	}
	if s.c.OnFrontError != nil {
		s.c.OnFrontError(call, err)
	}
	if s.breaker.failed() {
		s.c.Logger.LogAttrs(ctx, slog.LevelWarn, "submitonce: the front of the store fails; going on with the back alone",
			slog.String("call", call), slog.Any("error", err))
	}
	return false
}

// Claim implements [replay.Store]. A record that is done in the front costs the
// back nothing.
func (s *Store) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	if err := s.check(ctx); err != nil {
		return replay.Record{}, nil, fmt.Errorf("tieredstore: claim: %w", err)
	}
	var (
		seen  replay.Record
		front replay.Hold
	)
	s.ask(ctx, "claim", func(ctx context.Context) (err error) {
		seen, front, err = s.front.Claim(ctx, c)
		return err
	})
	if seen.State == replay.Done {
		return seen, nil, nil
	}
	rec, back, err := s.back.Claim(ctx, c)
	if err == nil && back != nil {
		h := &hold{s: s, claim: c, front: front, back: back}
		if lender, ok := back.(replay.Lender); ok {
			return rec, &lendingHold{h, lender}, nil
		}
		return rec, h, nil
	}
	if front != nil && err == nil && rec.State == replay.Done {
		s.ask(context.WithoutCancel(ctx), "seal", func(ctx context.Context) error {
			return front.Seal(ctx, rec.Response, min(refillRetention, s.c.FrontRetention))
		})
	}
	// Where the back has another owner, or fails, the front stays taken for a
	// lease. Giving it back would wake those who wait, each of whom would take it,
	// be told the same by the back, give it back and wake the others.
	if err != nil {
		return replay.Record{}, nil, fmt.Errorf("tieredstore: claim: %w", err)
	}
	return rec, nil, nil
}

// Look implements [replay.Store].
func (s *Store) Look(ctx context.Context, key string) (replay.Record, error) {
	if err := s.check(ctx); err != nil {
		return replay.Record{}, fmt.Errorf("tieredstore: look: %w", err)
	}
	var seen replay.Record
	s.ask(ctx, "look", func(ctx context.Context) (err error) {
		seen, err = s.front.Look(ctx, key)
		return err
	})
	if seen.State == replay.Done {
		return seen, nil
	}
	rec, err := s.back.Look(ctx, key)
	if err != nil {
		return replay.Record{}, fmt.Errorf("tieredstore: look: %w", err)
	}
	return rec, nil
}
