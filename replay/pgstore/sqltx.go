package pgstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// A SQLTx is the handler's transaction for code that is written for
// database/sql. It has what such code needs to run statements, and not what would
// begin a transaction. It is over when the handler returns, and rows that are
// still open then are closed.
//
// It is what sqlc calls DBTX, and what GORM calls ConnPool. One *gorm.DB, made of
// the DB of [TxConfig], does for the whole app, and in a handler
//
//	tx := db.Session(&gorm.Session{NewDB: true, Context: ctx})
//	tx.Statement.ConnPool = pgstore.SQL(ctx)
//	err := tx.Create(&order).Error // exists if and only if the response is sealed
//
// Here tx.Transaction makes savepoints. What goes through db itself is outside of
// the handler's transaction and stays, whatever comes of it.
type SQLTx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row

	// Commit and Rollback do nothing and return [ErrNotYours]. By having them, a
	// SQLTx tells GORM that it is a transaction already.
	Commit() error
	Rollback() error
}

// SQL is [Tx] for database/sql; both reach the same transaction. It needs
// [TxConfig.DB]. Without that, or without a transaction in ctx, every method of
// the result returns [ErrNoTx].
func SQL(ctx context.Context) SQLTx {
	if h, ok := ctx.Value(lentKey{}).(*txHold); ok && h.conn.sql != nil {
		return &sqlTx{h.tx, h.conn.sql}
	}
	return &sqlTx{&lentTx{over: ErrNoTx}, nil}
}

// A sqlTx hides what *sql.Conn has beyond SQLTx: with its BeginTx, GORM would
// commit the transaction.
type sqlTx struct {
	lent *lentTx
	conn *sql.Conn
}

func (s *sqlTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := s.lent.check(query); err != nil {
		return nil, err
	}
	result, err := s.conn.ExecContext(ctx, query, args...)
	s.lent.note(err)
	return result, err
}

func (s *sqlTx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := s.lent.check(query); err != nil {
		return nil, err
	}
	return s.conn.PrepareContext(ctx, query)
}

func (s *sqlTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := s.lent.check(query); err != nil {
		return nil, err
	}
	rows, err := s.conn.QueryContext(ctx, query, args...)
	s.lent.note(err)
	if err == nil {
		s.lent.onEnd(func() {
			_ = rows.Close() // for those that nobody has read to their end
			s.lent.note(rows.Err())
		})
	}
	return rows, err
}

func (s *sqlTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := s.lent.check(query); err != nil {
		db := sql.OpenDB(refusal{err})
		defer db.Close()
		return db.QueryRowContext(ctx, query, args...)
	}
	row := s.conn.QueryRowContext(ctx, query, args...)
	s.lent.note(row.Err())
	s.lent.onEnd(func() { _ = row.Scan() }) // the only way to close it
	return row
}

func (s *sqlTx) Commit() error { return s.lent.refuse() }

func (s *sqlTx) Rollback() error { return s.lent.refuse() }

// A refusal is a connector that only fails: package sql alone can make a
// *sql.Row.
type refusal struct{ err error }

func (r refusal) Connect(context.Context) (driver.Conn, error) { return nil, r.err }

func (r refusal) Driver() driver.Driver { return nil }
