package main

import (
	"context"
	"errors"
	"fmt"
	"io"

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

func (b *backend) onClose(c io.Closer) { b.closers = append(b.closers, c.Close) }

// openBackend opens what -store names.
func openBackend(ctx context.Context, o options) (*backend, error) {
	b := new(backend)
	var err error
	switch o.store {
	case "memory":
		err = b.openMemory()
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
	b.onClose(store)
	b.store, b.book = store, newMemoryBook()
	return nil
}
