package replay_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// Whoever asks, and whenever, gets the one end that came first.
func TestAContextOfAGuardEndsOnce(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for round := range 2000 {
		deadline := time.Time{}
		if round%2 == 0 {
			deadline = time.Now().Add(time.Hour)
		}
		ctx, end := replay.NewLazyContext(context.Background(), deadline)
		var early [2]<-chan struct{}
		var wg sync.WaitGroup
		for i := range early {
			wg.Go(func() { early[i] = ctx.Done() })
			wg.Go(func() { _ = ctx.Err() })
			wg.Go(func() { _ = context.Cause(ctx) })
		}
		wg.Go(func() { end(one) })
		wg.Go(func() { end(two) })
		wg.Wait()
		for _, done := range append(early[:], ctx.Done()) {
			select {
			case <-done:
			default:
				t.Fatal("Done is open after the end")
			}
		}
		if err := ctx.Err(); !errors.Is(err, context.Canceled) {
			t.Fatalf("Err after the end: %v, want context.Canceled", err)
		}
		cause := context.Cause(ctx)
		if cause != one && cause != two {
			t.Fatalf("the cause is %v, want one or two", cause)
		}
		end(errors.New("late"))
		if again := context.Cause(ctx); again != cause {
			t.Fatalf("the cause was %v and is %v", cause, again)
		}
	}
}

func TestAContextOfAGuardThatWasLateStaysLate(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  func(context.Context)
	}{
		{"Err was asked first", func(ctx context.Context) { _ = ctx.Err() }},
		{"Done was asked first", func(ctx context.Context) { <-ctx.Done() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, end := replay.NewLazyContext(context.Background(), time.Now().Add(-time.Second))
			tt.ask(ctx)
			end(errors.New("too late to count"))
			if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Err: %v, want context.DeadlineExceeded", err)
			}
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				t.Errorf("the cause: %v, want context.DeadlineExceeded", cause)
			}
			<-ctx.Done()
		})
	}
}
