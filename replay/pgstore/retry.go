package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
)

// errAgain means that a statement met a record that it could not see yet.
var errAgain = errors.New("a record appeared meanwhile")

// A fault says what can be done about a failed call.
type fault int

const (
	final     fault = iota // nothing
	lostRace               // the server gave way to another transaction: repeat
	stalePlan              // the server forgot a prepared statement, or it no longer fits: repeat without
	badConn                // the connection is of no use any more: repeat with another
	away                   // no connection is to be had: repeat a little later
)

const (
	maxRaces   = 50 // each lost race is somebody else's progress
	maxConns   = 10 // connections given up in one call
	slowestTry = 250 * time.Millisecond
)

// faultOf judges an error of a call.
func faultOf(err error) fault {
	if errors.Is(err, errAgain) {
		return lostRace
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "40001", "40P01": // serialization_failure, deadlock_detected
			return lostRace
		case "26000", "42P05": // invalid_sql_statement_name, duplicate_prepared_statement
			return stalePlan
		case "25006": // read_only_sql_transaction: after a fail-over, the old primary
			return badConn
		case "57P03", "53300": // cannot_connect_now, too_many_connections
			return away
		case "57P01", "57P02", "57P05", "25P03": // the session was ended
			return badConn
		}
		if pg.Code[:2] == "08" {
			return badConn
		}
		if pg.SeverityUnlocalized == "FATAL" && pg.Code[:2] != "28" && pg.Code[:2] != "3D" {
			return badConn
		}
		return final
	}
	var (
		connect *pgconn.ConnectError
		network net.Error
	)
	switch {
	case errors.As(err, &connect):
		return away
	case errors.Is(err, errUnsent), pgconn.SafeToRetry(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.As(err, &network):
		return badConn
	}
	return final
}

// do calls f with a connection, and again if that can help, until ctx is over.
// f must be repeatable. What do returns is wrapped with op.
func (t *table) do(ctx context.Context, op string, f func(*pgxpool.Conn) error) error {
	return t.repeat(ctx, op, func() error { return t.try(ctx, f) })
}

// repeat calls f, and again if that can help, until ctx is over.
func (t *table) repeat(ctx context.Context, op string, f func() error) error {
	var races, conns int
	for {
		if t.isClosed() {
			return replay.ErrClosed
		}
		err := f()
		if err == nil {
			return nil
		}
		var pause time.Duration
		kind := faultOf(err)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("pgstore: %s: %w", op, errors.Join(context.Cause(ctx), err))
		case kind == lostRace && races < maxRaces:
			races++
			pause = backoff(races, time.Millisecond, 20*time.Millisecond)
		case kind == stalePlan && conns < maxConns:
			conns++
			if !t.unnamed.Swap(true) {
				t.log.LogAttrs(ctx, slog.LevelWarn, "submitonce: prepared statements do not last, as behind a"+
					" transaction pooler; going on without. Set default_query_exec_mode=exec in the pool's configuration",
					slog.Any("error", err))
			}
		case kind == badConn && conns < maxConns:
			conns++
			if conns == 3 {
				t.pool.Reset() // they are all from before the restart or the fail-over
			}
			pause = backoff(conns-3, 5*time.Millisecond, slowestTry)
		case kind == away && conns < maxConns:
			conns++
			pause = backoff(conns, 5*time.Millisecond, slowestTry)
		default:
			return fmt.Errorf("pgstore: %s: %w", op, err)
		}
		if !t.sleep(ctx, pause) {
			return fmt.Errorf("pgstore: %s: %w", op, err)
		}
	}
}

// try calls f once. A connection that has failed does not go back to the pool.
func (t *table) try(ctx context.Context, f func(*pgxpool.Conn) error) error {
	conn, err := t.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	err = f(conn)
	if err != nil && faultOf(err) == badConn {
		_ = conn.Conn().Close(ctx) // it is given up either way
	}
	return err
}

// backoff returns a pause before the nth repetition, doubled each time, with
// jitter so that those who collided do not collide again.
func backoff(n int, first, most time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	d := min(first<<min(n-1, 20), most)
	return d/2 + rand.N(d/2+1)
}

// sleep waits for d and reports false if ctx ended or the store was closed
// before.
func (t *table) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-t.life.Done():
		return false
	}
}

// noRow reports whether a statement returned no row.
func noRow(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
