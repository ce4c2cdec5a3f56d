package pgstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// A SQLTx is the handler's transaction for code that is written for
// database/sql. It has what such code needs to run statements, and not what would
// begin or end a transaction. It is over when the handler returns.
//
// It is what sqlc calls DBTX, and what GORM calls ConnPool:
//
//	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pgstore.SQL(ctx)}),
//		&gorm.Config{SkipDefaultTransaction: true})
type SQLTx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
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
	return s.conn.ExecContext(ctx, query, args...)
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
	return s.conn.QueryContext(ctx, query, args...)
}

func (s *sqlTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := s.lent.check(query); err != nil {
		db := sql.OpenDB(refusal{err})
		defer db.Close()
		return db.QueryRowContext(ctx, query, args...)
	}
	return s.conn.QueryRowContext(ctx, query, args...)
}

// A refusal is a connector that only fails: package sql alone can make a
// *sql.Row.
type refusal struct{ err error }

func (r refusal) Connect(context.Context) (driver.Conn, error) { return nil, r.err }

func (r refusal) Driver() driver.Driver { return nil }
