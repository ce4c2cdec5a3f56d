package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

// A backend is where the records and the orders are kept. Where the store is a
// database, the orders are in that database too, so that several shops share
// them and they outlive a restart.
type backend struct {
	store   replay.Store
	book    book
	closers []func() error // in the order in which they were opened
}

// close ends what the backend has begun, the last first.
func (b *backend) close() error {
	var errs []error
	for i := len(b.closers) - 1; i >= 0; i-- {
		errs = append(errs, b.closers[i]())
	}
	b.closers = nil
	return errors.Join(errs...)
}

func (b *backend) onClose(f func() error) { b.closers = append(b.closers, f) }

// openBackend opens what -store names.
func openBackend(ctx context.Context, o options, log *slog.Logger) (*backend, error) {
	b := new(backend)
	var err error
	switch o.store {
	case "memory":
		err = b.openMemory()
	case "redis":
		err = b.openRedis(ctx, o, log)
	case "postgres":
		err = b.openPostgres(ctx, o, log)
	case "postgres-tx":
		err = b.openPostgresTx(ctx, o, log)
	case "sqlite":
		err = b.openSQLite(ctx, o, log)
	case "tiered":
		err = b.openTiered(ctx, o, log)
	default:
		err = fmt.Errorf("-store %s is not known", o.store)
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *backend) openMemory() error {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return err
	}
	b.onClose(store.Close)
	b.store, b.book = store, newMemoryBook()
	return nil
}

// reachIn bounds how long a server may take to answer at the start.
const reachIn = 5 * time.Second

// unreachable says which server does not answer, and how to start one.
func unreachable(server, at, flag string, err error) error {
	return fmt.Errorf("cannot reach %s at %s; start one with\n\n"+
		"\tdocker compose -f examples/orderform/compose.yaml up -d\n\n"+
		"or name another with %s (%w)", server, at, flag, err)
}

// sweepEvery is how often expired records are removed.
const sweepEvery = time.Minute

// sweep removes expired records until the backend is closed. A database that is
// away for a while only puts it off.
func (b *backend) sweep(s replay.Sweeper, log *slog.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := replay.Sweep(ctx, s, sweepEvery); ctx.Err() == nil {
				log.Warn("expired records could not be removed", "error", err)
			}
			select {
			case <-time.After(sweepEvery):
			case <-ctx.Done():
			}
		}
	}()
	b.onClose(func() error {
		cancel()
		<-done
		return nil
	})
}
