package sqlitestore

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/submitonce/submitonce/replay"
)

var (
	_ replay.Store   = (*Store)(nil)
	_ replay.Watcher = (*Store)(nil)
	_ replay.Sweeper = (*Store)(nil)
)

//go:embed schema.sql
var schema string

// Open opens the file at path, and makes it if there is none, with settings that
// suit a [Store]: WAL mode, synchronous=FULL, and transactions that take the
// write lock when they begin, so that a writer waits for another instead of
// failing. The application may use it for tables of its own.
//
// SetMaxOpenConns may set a limit, even of 1: a store keeps no connection of a
// limited pool between two calls, not while duplicates wait either. But whoever
// else holds the last connection holds up the store: with a limit of 1, requests
// that come while a handler has a transaction or unread rows open wait for it,
// and get 503 if that takes longer than the guard's StoreTimeout.
func Open(path string) (*sql.DB, error) {
	if path == "" {
		return nil, errors.New("sqlitestore: open: the path is empty")
	}
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
	}}
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err == nil {
		err = db.Ping()
	}
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: open %s: %w", path, err)
	}
	return db, nil
}

// A Store keeps records in a SQLite file. It is safe for concurrent use, by
// several processes on one machine, too.
type Store struct {
	db *sql.DB

	// SQLite has one writer. Writers of this process take turns here, where a
	// context ends their wait, and only those of other processes meet in the file.
	turn chan struct{}

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	closed   bool                       // guarded by mu
	watchers map[string][]chan struct{} // guarded by mu
	looking  bool                       // guarded by mu: lookOut is running
}

// New returns a store in db, and makes its table if there is none.
func New(ctx context.Context, db *sql.DB) (*Store, error) {
	if db == nil {
		return nil, errors.New("sqlitestore: db is nil: open one with Open")
	}
	s := &Store{db: db, turn: make(chan struct{}, 1), watchers: make(map[string][]chan struct{})}
	s.life, s.end = context.WithCancel(context.Background())
	if _, err := s.exec(ctx, schema); err != nil {
		return nil, fmt.Errorf("sqlitestore: make the table: %w", err)
	}
	return s, nil
}

// Close ends the store and waits for the write that is under way. It leaves the
// database open, never fails, and may be called twice.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.running.Wait()
	s.turn <- struct{}{}
	<-s.turn
	return nil
}

// check is what each call begins with.
func (s *Store) check(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return replay.ErrClosed
	}
	return ctx.Err()
}

// write calls f when it is this call's turn to write. While another process
// holds the file, it tries again until ctx ends.
func (s *Store) write(ctx context.Context, f func() error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		err := f()
		if !busy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func busy(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff // the rest says more precisely what was busy
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

func (s *Store) exec(ctx context.Context, query string, args ...any) (affected int64, err error) {
	err = s.write(ctx, func() error {
		r, err := s.db.ExecContext(ctx, query, args...)
		if err == nil {
			affected, err = r.RowsAffected()
		}
		return err
	})
	return affected, err
}

// now is the machine's clock in ms, as SQLite has it, so that every process on
// the machine measures by the same.
const now = "CAST(unixepoch('subsec') * 1000 AS INTEGER)"

const (
	lookSQL = `SELECT state, attempt, ends_at - ` + now + `, response
		FROM submitonce WHERE key = ?1 AND ends_at > ` + now

	// A claim inserts, or takes over what has expired or is the owner's own.
	claimSQL = `INSERT INTO submitonce AS r (key, owner, state, attempt, ends_at)
		VALUES (?1, ?2, 0, 1, ` + now + ` + ?3)
		ON CONFLICT (key) DO UPDATE SET
			attempt = CASE WHEN r.state = 1 THEN 1 WHEN r.owner = excluded.owner THEN r.attempt ELSE r.attempt + 1 END,
			owner = excluded.owner, state = 0, ends_at = excluded.ends_at, response = NULL
		WHERE r.ends_at <= ` + now + ` OR (r.state = 0 AND r.owner = excluded.owner)
		RETURNING attempt`

	extendSQL = `UPDATE submitonce SET ends_at = max(ends_at, ` + now + ` + ?3)
		WHERE key = ?1 AND owner = ?2 AND state = 0`

	sealSQL = `UPDATE submitonce SET state = 1, response = ?4, ends_at = ` + now + ` + ?3
		WHERE key = ?1 AND owner = ?2 AND state = 0`

	sealedSQL = `SELECT count(*) FROM submitonce WHERE key = ?1 AND owner = ?2 AND state = 1`

	releaseSQL = `DELETE FROM submitonce WHERE key = ?1 AND owner = ?2 AND state = 0`

	sweepSQL = `DELETE FROM submitonce WHERE key IN (
		SELECT key FROM submitonce
		WHERE ends_at <= ` + now + ` - CASE state WHEN 0 THEN 60000 ELSE 0 END AND ends_at <= ` + now + `
		LIMIT ?1)`
)

// Claim implements [replay.Store]. A duplicate only reads, which waits for no
// writer.
func (s *Store) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	rec, hold, err := s.claim(ctx, c)
	if err != nil {
		return replay.Record{}, nil, fmt.Errorf("sqlitestore: claim: %w", err)
	}
	return rec, hold, nil
}

func (s *Store) claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	if err := s.check(ctx); err != nil {
		return replay.Record{}, nil, err
	}
	key, owner := []byte(c.Key), c.Owner[:]
	for {
		rec, err := s.look(ctx, key)
		if err != nil || rec.State == replay.Done {
			return rec, nil, err
		}
		if rec.State == replay.Pending {
			var mine int
			const q = `SELECT count(*) FROM submitonce WHERE key = ?1 AND owner = ?2 AND state = 0`
			if err := s.db.QueryRowContext(ctx, q, key, owner).Scan(&mine); err != nil || mine == 0 {
				return rec, nil, err
			}
		}
		var attempt int
		err = s.write(ctx, func() error {
			return s.db.QueryRowContext(ctx, claimSQL, key, owner, c.Lease.Milliseconds()).Scan(&attempt)
		})
		switch {
		case errors.Is(err, sql.ErrNoRows): // somebody was quicker: look again
			continue
		case err != nil:
			return replay.Record{}, nil, err
		}
		rec = replay.Record{State: replay.Pending, Attempt: attempt, LeaseLeft: c.Lease}
		return rec, &hold{s: s, key: c.Key, owner: c.Owner}, nil
	}
}

// Look implements [replay.Store].
func (s *Store) Look(ctx context.Context, key string) (replay.Record, error) {
	err := s.check(ctx)
	var rec replay.Record
	if err == nil {
		rec, err = s.look(ctx, []byte(key))
	}
	if err != nil {
		return replay.Record{}, fmt.Errorf("sqlitestore: look: %w", err)
	}
	return rec, nil
}

func (s *Store) look(ctx context.Context, key []byte) (replay.Record, error) {
	var (
		state, attempt int
		left           int64
		response       []byte
	)
	err := s.db.QueryRowContext(ctx, lookSQL, key).Scan(&state, &attempt, &left, &response)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return replay.Record{}, nil
	case err != nil:
		return replay.Record{}, err
	case state == 1:
		return replay.Record{State: replay.Done, Attempt: attempt, Response: response}, nil
	}
	return replay.Record{
		State: replay.Pending, Attempt: attempt, LeaseLeft: time.Duration(left) * time.Millisecond,
	}, nil
}

// Sweep implements [replay.Sweeper].
func (s *Store) Sweep(ctx context.Context, limit int) (int, error) {
	if err := s.check(ctx); err != nil {
		return 0, fmt.Errorf("sqlitestore: sweep: %w", err)
	}
	n, err := s.exec(ctx, sweepSQL, limit)
	if err != nil {
		return 0, fmt.Errorf("sqlitestore: sweep: %w", err)
	}
	return int(n), nil
}
