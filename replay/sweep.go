package replay

import (
	"context"
	"fmt"
	"time"
)

const (
	sweepBatch = 1000
	sweepPause = 50 * time.Millisecond
)

// Sweep removes expired records from s, in batches of 1,000 with pauses of 50
// ms between them, at once and then each time that every has passed. It blocks
// until ctx ends and returns why, or the first error of s, so that the caller
// decides whether to go on. Start it once per process, on a goroutine of its own;
// several processes may sweep one store.
func Sweep(ctx context.Context, s Sweeper, every time.Duration) error {
	for {
		n, err := s.Sweep(ctx, sweepBatch)
		if err != nil {
			return fmt.Errorf("replay: sweep: %w", err)
		}
		pause := every
		if n >= sweepBatch {
			pause = sweepPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
