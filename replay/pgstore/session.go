package pgstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// endTimeout bounds what ends a transaction that nobody waits for.
const endTimeout = 5 * time.Second

// A session is a connection that is kept for the length of a transaction.
type session struct {
	pgx     *pgx.Conn
	sql     *sql.Conn // the same for database/sql, or nil
	release func()    // gives it back to the pool, which drops it if a transaction is open
}

// occupy calls f with a session, and again if that can help. f says whether it
// keeps the session; if not, it goes back to the pool.
func (s *TxStore) occupy(ctx context.Context, op string, f func(*session) (keep bool, err error)) error {
	return s.repeat(ctx, op, func() error {
		c, err := s.session(ctx)
		if err != nil {
			return err
		}
		keep, err := f(c)
		if err != nil {
			c.drop()
		} else if !keep {
			c.release()
		}
		return err
	})
}

func (s *TxStore) session(ctx context.Context) (*session, error) {
	if s.db == nil {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &session{pgx: conn.Conn(), release: conn.Release}, nil
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &session{sql: conn, release: func() { _ = conn.Close() }}
	err = conn.Raw(func(driverConn any) error {
		dc, ok := driverConn.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("TxConfig.DB has connections of type %T, not those of pgx", driverConn)
		}
		c.pgx = dc.Conn()
		return nil
	})
	if err != nil {
		c.release()
		return nil, err
	}
	return c, nil
}

// exec runs statements without parameters in one round trip, whatever state the
// transaction is in.
func (c *session) exec(ctx context.Context, sql string) error {
	_, err := c.pgx.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// rollBack ends the transaction and gives the connection back.
func (c *session) rollBack() {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := c.exec(ctx, "ROLLBACK"); err != nil {
		c.drop()
		return
	}
	c.release()
}

// drop gives the connection up, and with it the transaction, whose COMMIT has
// not been sent.
func (c *session) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_ = c.pgx.Close(ctx) // the end of the connection is the end of the transaction
	if c.sql == nil {
		c.release()
		return
	}
	// Package sql waits here for rows of a prepared statement that the handler has
	// not closed, and nobody else can close them.
	go c.release()
}
