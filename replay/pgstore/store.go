package pgstore

import (
	"context"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
)

var (
	_ replay.Store   = (*Store)(nil)
	_ replay.Watcher = (*Store)(nil)
	_ replay.Sweeper = (*Store)(nil)
	_ io.Closer      = (*Store)(nil)
)

const (
	pending = 0 // the column state
	done    = 1
)

// A Store keeps records in a table and claims by lease: a claim is a row that
// is committed at once, and stands until it is sealed or released, or its lease
// has run out by the clock of the server. A first submit costs two round trips,
// a duplicate one. It is safe for concurrent use by any number of processes.
//
// Lost races, serialization failures and deadlocks are retried inside, and so
// are calls that met a dead connection or a server that has become read-only,
// as long as their context lasts.
type Store struct {
	table
	claim, seal                      *statement
	extend, sealed, release, watched string
}

// New returns a Store on the table that c names, which [Migrate] makes, or all
// that is wrong with c. It makes no connection, and closes neither pool nor
// connections that it did not open.
func New(pool *pgxpool.Pool, c Config) (*Store, error) {
	s := new(Store)
	if err := s.open(pool, c); err != nil {
		return nil, err
	}
	s.watches.read = s.readRecords
	s.claim, s.seal = s.statement("claim"), s.statement("seal")
	s.extend, s.sealed = s.text("extend"), s.text("sealed")
	s.release, s.watched = s.text("release"), s.text("watched")
	return s, nil
}

// Claim implements [replay.Store] in one round trip, or one more for each time
// that it meets a claim which was committed in this very moment.
func (s *Store) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	if rec, ok, err := s.replayed(ctx, c.Key); ok || err != nil {
		return rec, nil, err
	}
	var (
		won, any bool
		rec      replay.Record
		args     = [][]byte{[]byte(c.Key), c.Owner[:], interval(c.Lease)}
	)
	err := s.do(ctx, "claim", func(conn *pgxpool.Conn) error {
		any = false
		_, err := s.send(ctx, conn.Conn(), call{statement: s.claim, args: args, row: func(r row) error {
			any = true
			return scanRecord(r, &rec, &won)
		}})
		if err == nil && !any {
			return errAgain
		}
		return err
	})
	if err != nil || !won {
		if rec.State == replay.Done {
			s.finished.add(c.Key)
		}
		return rec, nil, err
	}
	return rec, &hold{store: s, key: c.Key, owner: c.Owner}, nil
}

// Look implements [replay.Store] in one round trip.
func (s *Store) Look(ctx context.Context, key string) (replay.Record, error) {
	var rec replay.Record
	err := s.do(ctx, "look", func(conn *pgxpool.Conn) (err error) {
		rec, err = s.standing(ctx, conn.Conn(), key)
		return err
	})
	return rec, err
}

// scanRecord reads what stands under a key: first what is given, then state,
// attempt, time left and response.
func scanRecord(row interface{ Scan(...any) error }, rec *replay.Record, first ...any) error {
	var (
		state    int16
		attempt  int32
		left     int64
		response bytea
		dest     = append(first, &state, &attempt, &left, &response)
	)
	if err := row.Scan(dest...); err != nil {
		return err
	}
	*rec = recordOf(state, attempt, duration(left), response)
	return nil
}

func recordOf(state int16, attempt int32, left time.Duration, response []byte) replay.Record {
	if state == done {
		return replay.Record{State: replay.Done, Attempt: int(attempt), Response: response}
	}
	return replay.Record{
		State: replay.Pending, Attempt: int(attempt),
		LeaseLeft: max(left, time.Microsecond),
	}
}
