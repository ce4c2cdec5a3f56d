package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/submitonce/submitonce/replay/sqlitestore"
)

// openSQLite keeps records and orders in one file.
func (b *backend) openSQLite(ctx context.Context, o options, log *slog.Logger) error {
	db, err := sqlitestore.Open(o.sqliteFile)
	if err != nil {
		return fmt.Errorf("-sqlite-file: %w", err)
	}
	b.onClose(db.Close)
	store, err := sqlitestore.New(ctx, db)
	if err != nil {
		return err
	}
	b.onClose(store.Close)
	b.sweep(store, log)
	book, err := newSQLiteBook(ctx, db)
	if err != nil {
		return err
	}
	b.store, b.book = store, book
	return nil
}
