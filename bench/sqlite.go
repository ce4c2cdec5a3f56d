package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/sqlitestore"
)

func (s *servers) openSQLite(ctx context.Context) (replay.Store, func(), error) {
	db, err := sqlitestore.Open(filepath.Join(s.dir, named("s")+".db"))
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlitestore.New(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	return store, func() { _ = store.Close(); _ = db.Close() }, nil
}

const (
	sqliteWritesName = "INSERT, then UPDATE by key"
	sqliteReadsName  = "SELECT by key"
)

func (s *servers) sqliteFloor(ctx context.Context) (*sql.DB, op, error) {
	db, err := sqlitestore.Open(filepath.Join(s.dir, named("f")+".db"))
	if err != nil {
		return nil, nil, err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE rec (key TEXT PRIMARY KEY, owner BLOB NOT NULL, state INT NOT NULL,"+
		" expires_at INT NOT NULL, response BLOB) WITHOUT ROWID"); err != nil {
		return nil, nil, err
	}
	insert, err := db.PrepareContext(ctx, "INSERT INTO rec VALUES (?, ?, 0, ?, NULL)")
	if err != nil {
		return nil, nil, err
	}
	update, err := db.PrepareContext(ctx, "UPDATE rec SET state = 1, response = ?, expires_at = ? WHERE key = ?")
	return db, func(i int) error {
		c := claimOf(i)
		if _, err := insert.ExecContext(ctx, c.Key, c.Owner[:], time.Now().Add(c.Lease).UnixMilli()); err != nil {
			return err
		}
		_, err := update.ExecContext(ctx, record, time.Now().Add(retention).UnixMilli(), c.Key)
		return err
	}, err
}

func (s *servers) sqliteWrites() Contender {
	return Contender{Name: sqliteWritesName, Open: func(ctx context.Context, _ int) (opened, error) {
		db, write, err := s.sqliteFloor(ctx)
		if err != nil {
			return opened{}, err
		}
		return opened{same(write), func() { _ = db.Close() }}, nil
	}}
}

func (s *servers) sqliteReads() Contender {
	return Contender{Name: sqliteReadsName, Open: func(ctx context.Context, _ int) (opened, error) {
		db, write, err := s.sqliteFloor(ctx)
		if err != nil {
			return opened{}, err
		}
		query, err := db.PrepareContext(ctx, "SELECT state, expires_at, response FROM rec WHERE key = ?")
		if err != nil {
			return opened{}, err
		}
		next := sealedKeys()
		return opened{func() (op, error) {
			sealed := next()
			return func(int) error {
				var state, expires int64
				var response []byte
				return query.QueryRowContext(ctx, claimOf(sealed).Key).Scan(&state, &expires, &response)
			}, write(sealed)
		}, func() { _ = db.Close() }}, nil
	}}
}
