package replay

import (
	"context"
	"sync/atomic"
)

// A verdict is what a handler says about its own outcome.
type verdict int32

const (
	undecided verdict = iota
	sealVerdict
	releaseVerdict
)

// A runContext is the context of a handler that owns its key.
type runContext struct {
	lazyContext
	key     string
	attempt int
	verdict atomic.Int32
}

type runKey struct{}

func (c *runContext) Value(key any) any {
	if key == (runKey{}) {
		return c
	}
	return c.lazyContext.Value(key)
}

func running(ctx context.Context) *runContext {
	c, _ := ctx.Value(runKey{}).(*runContext)
	return c
}

// Key returns the key under which the running handler's outcome will be
// stored, or "" outside of a guard. It is at most [MaxKeyLen] bytes of printable
// ASCII and the same for each attempt: write it into a unique column beside the
// effect, and a second attempt finds what the first one did.
func Key(ctx context.Context) string {
	if c := running(ctx); c != nil {
		return c.key
	}
	return ""
}

// Attempt returns 1 for the first owner of the key and one more for each owner
// that took over from one whose lease ran out, because its process died or
// stood still. From 2 on, an effect of an earlier attempt may exist: look for it
// by [Key] before acting. Outside of a guard it returns 0.
func Attempt(ctx context.Context) int {
	if c := running(ctx); c != nil {
		return c.attempt
	}
	return 0
}

// Seal says that this request's outcome is final, whatever its status: it is
// stored, and duplicates get it. Use it for a 4xx that a retry must not change,
// such as "the slot is taken". The last call of Seal and [Release] counts; a
// panic releases all the same, and so does a response that is shorter than it
// declares. Outside of a guard it does nothing.
func Seal(ctx context.Context) { decide(ctx, sealVerdict) }

// Release says that this request's answer is not an outcome, whatever its
// status: nothing is stored, and the same token may be submitted again. Use it
// where a form comes back as a 200 with red fields, where a 303 leads back to
// the form, or where a login page was asked for. The last call of [Seal] and
// Release counts. Outside of a guard it does nothing.
func Release(ctx context.Context) { decide(ctx, releaseVerdict) }

func decide(ctx context.Context, v verdict) {
	if c := running(ctx); c != nil {
		c.verdict.Store(int32(v))
	}
}
