package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
)

var (
	_ replay.Store   = (*TxStore)(nil)
	_ replay.Watcher = (*TxStore)(nil)
	_ replay.Sweeper = (*TxStore)(nil)
	_ io.Closer      = (*TxStore)(nil)
	_ replay.Lender  = (*txHold)(nil)
)

// A TxConfig says how a [TxStore] works. Its zero value is right for most.
type TxConfig struct {
	Config

	// IsoLevel is the isolation level of the handler's transaction. From repeatable
	// read on, the claim is three statements dearer, though not by a round trip. The
	// default is the server's.
	IsoLevel pgx.TxIsoLevel

	// AccessMode of the handler's transaction may be pgx.ReadWrite, for servers
	// whose default is read only. It can't be pgx.ReadOnly: the response is stored
	// in the same transaction. The default is the server's.
	AccessMode pgx.TxAccessMode

	// DB, from stdlib.OpenDBFromPool with the same pool, lets handlers that are
	// written for database/sql take part: see [SQL]. The default is nil: they can't.
	DB *sql.DB
}

// A TxStore claims in a transaction that the handler writes in, and commits it
// together with the response: effect and record exist both or not at all, and
// after a crash the next duplicate runs at once, with no lease to wait for. The
// handler gets the transaction with [Tx]. It costs the handler no round trip
// beyond those of a transaction of its own: the claim travels with BEGIN and the
// response with COMMIT.
//
// Each running handler holds a connection of the pool; waiting duplicates hold
// none. A handler that takes a second connection from the same pool can make the
// pool run dry.
//
// The server's idle_in_transaction_session_timeout, and its transaction_timeout
// from PostgreSQL 17 on, have to be longer than handlers pause between statements,
// and take as a whole: a transaction that they end is undone, each time anew.
//
// A claim is an advisory lock until it is committed, so nobody can see its
// attempt; it counts as attempt 1 unless a [Store] on the same table has left an
// abandoned claim. Lease, and [replay.Hold] Extend, have no meaning here.
type TxStore struct {
	table
	db *sql.DB // or nil

	mu   sync.Mutex
	open map[*txHold]struct{} // guarded by mu

	// isolation is what the server's default has turned out to be, or what was
	// asked for.
	isolation atomic.Int32

	level, start, startRead, commit           *statement
	tryLock, tryHold, pass, read, clear, seal *statement
	ended, holders, watched                   string
}

// NewTx returns a TxStore on the table that c names, which [Migrate] makes, or
// all that is wrong with c. It makes no connection.
func NewTx(pool *pgxpool.Pool, c TxConfig) (*TxStore, error) {
	var errs []error
	switch c.IsoLevel {
	case "", pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable:
	default:
		errs = append(errs, fmt.Errorf("pgstore: TxConfig.IsoLevel %q is none that PostgreSQL has", c.IsoLevel))
	}
	if c.AccessMode != "" && c.AccessMode != pgx.ReadWrite {
		errs = append(errs, fmt.Errorf("pgstore: TxConfig.AccessMode %q: the response must be written", c.AccessMode))
	}
	s := &TxStore{db: c.DB, open: make(map[*txHold]struct{})}
	if err := errors.Join(append([]error{s.table.open(pool, c.Config)}, errs...)...); err != nil {
		return nil, err
	}
	s.watches.read = s.readHolders
	begin := "BEGIN"
	if c.IsoLevel != "" {
		begin += " ISOLATION LEVEL " + string(c.IsoLevel)
	}
	if c.AccessMode != "" {
		begin += " " + string(c.AccessMode)
	}
	s.start, s.commit = newStatement(begin), newStatement("COMMIT")
	s.startRead = newStatement("BEGIN ISOLATION LEVEL READ COMMITTED")
	s.level = newStatement("SHOW transaction_isolation")
	switch c.IsoLevel {
	case pgx.ReadCommitted:
		s.isolation.Store(readsAfresh)
	case pgx.RepeatableRead, pgx.Serializable:
		s.isolation.Store(readsOnce)
	}
	s.tryLock, s.read = s.statement("tx_lock"), s.statement("tx_read")
	s.tryHold, s.pass = s.statement("tx_hold"), s.statement("tx_pass")
	s.clear, s.seal = s.statement("tx_clear"), s.statement("tx_seal")
	s.ended = s.text("tx_ended")
	s.holders, s.watched = s.text("tx_holders"), s.text("watched")
	return s, nil
}

// Claim implements [replay.Store] in one round trip, which begins the
// transaction as well. If the key is not to be had, it takes another to roll back,
// unless this process has lately seen it done; and the connection goes back to the
// pool.
func (s *TxStore) Claim(ctx context.Context, c replay.Claim) (rec replay.Record, h replay.Hold, err error) {
	if rec, ok, err := s.replayed(ctx, c.Key); ok || err != nil {
		return rec, nil, err
	}
	id := lock(s.claimed, c.Key)
	err = s.occupy(ctx, "claim", func(conn *session) (keep bool, err error) {
		see, err := s.begin(ctx, conn.pgx, id, c.Key)
		if err != nil {
			return false, err
		}
		switch {
		case see.live:
			if rec = see.rec; rec.State == replay.Done {
				s.finished.add(c.Key)
			}
		case !see.locked:
			rec = replay.Record{State: replay.Pending}
		default:
			attempt := 1
			if see.exists && see.rec.State == replay.Pending {
				attempt = see.rec.Attempt // abandoned by a Store
				if string(see.owner) != string(c.Owner[:]) {
					attempt++
				}
			}
			rec = replay.Record{State: replay.Pending, Attempt: attempt}
			h, err = s.keep(&txHold{
				store: s, key: c.Key, owner: c.Owner, lock: id, attempt: attempt,
				conn: conn, pid: see.pid, occupied: see.exists, tx: &lentTx{conn: conn.pgx},
			})
			return err == nil, err
		}
		conn.rollBack() // first: until then, it looks like an owner
		return true, nil
	})
	return rec, h, err
}

// keep notes that h is open.
func (s *TxStore) keep(h *txHold) (replay.Hold, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return nil, replay.ErrClosed
	}
	s.open[h] = struct{}{}
	return h, nil
}

// Close ends what the store runs in the background and waits for it, and rolls
// back the transactions that are open: let the handlers finish first. Later calls
// return [replay.ErrClosed]. It does not close the pool. It may be called twice,
// and never fails.
func (s *TxStore) Close() error {
	s.end()
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, h := range open {
		h.cut()
	}
	return s.table.Close()
}

// Look implements [replay.Store] in two round trips. It also sees claims in open
// transactions.
func (s *TxStore) Look(ctx context.Context, key string) (rec replay.Record, err error) {
	topics := []*topic{{key: key}}
	err = s.do(ctx, "look", func(conn *pgxpool.Conn) error {
		// First the lock: if it is free, then whoever had it has committed before the
		// record is read.
		held := make(map[string]standing, 1)
		if err := s.readLocks(ctx, conn, topics, held); err != nil {
			return err
		}
		rec, err = s.standing(ctx, conn.Conn(), key)
		if rec.State == replay.Free && held[key].by != "" {
			rec.State = replay.Pending
		}
		return err
	})
	return rec, err
}

// readHolders reads who holds keys, in open transactions or by records.
func (s *TxStore) readHolders(ctx context.Context, topics []*topic) (map[string]standing, error) {
	now := make(map[string]standing, len(topics))
	err := s.do(ctx, "poll", func(conn *pgxpool.Conn) error {
		if err := s.readLocks(ctx, conn, topics, now); err != nil {
			return err
		}
		return readStandings(now)(conn.Query(ctx, s.watched, s.args(keysOf(topics))...))
	})
	return now, err
}

// readLocks reads which sessions hold keys in open transactions.
func (s *TxStore) readLocks(ctx context.Context, conn *pgxpool.Conn, topics []*topic, now map[string]standing) error {
	ids := make([]int64, len(topics))
	keys := make(map[int64]string, len(topics))
	for i, tp := range topics {
		ids[i] = lock(s.claimed, tp.key)
		keys[ids[i]] = tp.key
	}
	rows, err := conn.Query(ctx, s.holders, s.args(ids)...)
	if err != nil {
		return err
	}
	var id, pid int64
	_, err = pgx.ForEachRow(rows, []any{&id, &pid}, func() error {
		now[keys[id]] = standing{by: strconv.FormatInt(pid, 10)}
		return nil
	})
	return err
}
