package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"time"
)

// Defaults of [Config] and [OnceConfig].
const (
	DefaultLease          = 30 * time.Second
	DefaultRetention      = 7 * 24 * time.Hour
	DefaultWait           = 30 * time.Second
	DefaultHandlerTimeout = 5 * time.Minute
	DefaultStoreTimeout   = 800 * time.Millisecond
	DefaultSealTimeout    = 5 * time.Second
)

// minLease keeps heartbeats, which come at a third of it, apart from noise.
const minLease = 100 * time.Millisecond

// maxKept is what every store can count with.
const maxKept = 100 * 365 * 24 * time.Hour

// A timing is the part of a configuration that [Config] and [OnceConfig] share.
// Zero means the default; negative means none, where that makes sense.
type timing struct {
	Wait, Lease, Retention, HandlerTimeout, StoreTimeout, SealTimeout time.Duration
}

func (t *timing) check(store Store, config string) error {
	t.Wait = cmp.Or(t.Wait, DefaultWait)
	t.Lease = cmp.Or(t.Lease, DefaultLease)
	t.Retention = cmp.Or(t.Retention, DefaultRetention)
	t.HandlerTimeout = cmp.Or(t.HandlerTimeout, DefaultHandlerTimeout)
	t.StoreTimeout = cmp.Or(t.StoreTimeout, DefaultStoreTimeout)
	t.SealTimeout = cmp.Or(t.SealTimeout, DefaultSealTimeout)

	var errs []error
	if store == nil {
		errs = append(errs, errors.New("replay: store is nil: pass one, such as that of memstore.New"))
	}
	if t.Lease < minLease {
		errs = append(errs, fmt.Errorf("replay: %s.Lease is %v: it has to be at least %v", config, t.Lease, minLease))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Lease", t.Lease}, {"Retention", t.Retention}} {
		if d.value > maxKept {
			errs = append(errs, fmt.Errorf("replay: %s.%s is %v: it has to be at most %v, which are a hundred years", config, d.field, d.value, maxKept))
		}
	}
	if t.Retention <= t.Lease {
		errs = append(errs, fmt.Errorf("replay: %s.Retention is %v, not longer than the lease of %v: "+
			"a record has to outlive the retries, a lease only its owner", config, t.Retention, t.Lease))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"StoreTimeout", t.StoreTimeout}, {"SealTimeout", t.SealTimeout}} {
		if d.value < time.Millisecond {
			errs = append(errs, fmt.Errorf("replay: %s.%s is %v: it has to be at least 1ms", config, d.field, d.value))
		}
	}
	return errors.Join(errs...)
}

func checkReruns(n int, config string) error {
	if n < 0 || n > 100 {
		return fmt.Errorf("replay: %s.Reruns is %d: it has to be 0 to 100", config, n)
	}
	return nil
}

func (t *timing) apply(e *engine, store Store, log *slog.Logger, observe func(context.Context, Event)) {
	e.store = store
	e.flights.seed = maphash.MakeSeed()
	e.wait, e.lease, e.retention = max(t.Wait, 0), t.Lease, t.Retention
	e.handlerTimeout = t.HandlerTimeout
	e.storeTimeout, e.sealTimeout = t.StoreTimeout, t.SealTimeout
	e.log = cmp.Or(log, slog.Default())
	e.observe = observe
}
