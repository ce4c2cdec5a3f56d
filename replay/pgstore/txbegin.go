package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/submitonce/submitonce/replay"
)

// A sighting is what a claim finds under its key.
type sighting struct {
	locked bool  // nobody else has the key in an open transaction, and now we have
	pid    int32 // of our session
	exists bool  // there is a row, maybe expired
	rec    replay.Record
	owner  []byte
	live   bool
}

// begin begins a transaction on conn, tries to lock the key and reads its
// record, all in one round trip. After an error conn must be closed.
//
// The record must be read by a snapshot that is younger than the lock, or a
// commit between the two goes unseen. From repeatable read on, the first
// statement takes the snapshot of the whole transaction, and that statement is the
// lock. There, a short transaction before it locks and reads. It also keeps that
// read out of what a serializable transaction is held to account for: the server
// keeps accounts by page, so that strangers' keys would get in each other's way.
//
// From the one transaction to the next the session keeps the lock. A pooler that
// shares sessions doesn't come between them, since the server is ready for another
// query only at the end of it all; and if a statement fails on the way, closing
// conn ends the session, because it is in a transaction.
func (s *TxStore) begin(ctx context.Context, conn *pgx.Conn, id int64, key string) (see sighting, err error) {
	var (
		lockArgs = [][]byte{bigint(id)}
		lockRow  = func(r row) error { return r.Scan(&see.locked, &see.pid) }
		readCall = call{statement: s.read, args: [][]byte{[]byte(key)}, row: func(r row) error { return see.scan(r) }}
	)
	switch s.isolation.Load() {
	case readsAfresh:
		_, err = s.send(ctx, conn, call{statement: s.start}, call{statement: s.tryLock, args: lockArgs, row: lockRow}, readCall)
	case readsOnce:
		_, err = s.send(ctx, conn,
			call{statement: s.startRead}, call{statement: s.tryHold, args: lockArgs}, readCall, call{statement: s.commit},
			call{statement: s.start}, call{statement: s.pass, args: lockArgs, row: lockRow})
	default: // the first claims find out
		if err = s.findIsolation(ctx, conn); err == nil {
			return s.begin(ctx, conn, id, key)
		}
	}
	return see, err
}

// findIsolation asks for the isolation level of a transaction that is begun as
// those of the handlers are.
func (s *TxStore) findIsolation(ctx context.Context, conn *pgx.Conn) error {
	var level string
	_, err := s.send(ctx, conn, call{statement: s.start},
		call{statement: s.level, row: func(r row) error { return r.Scan(&level) }}, call{statement: s.commit})
	switch pgx.TxIsoLevel(level) {
	case pgx.ReadCommitted, pgx.ReadUncommitted:
		s.isolation.Store(readsAfresh)
	case pgx.RepeatableRead, pgx.Serializable:
		s.isolation.Store(readsOnce)
	}
	return err
}

// What kind of snapshots the transactions have.
const (
	readsAfresh int32 = iota + 1 // one for each statement
	readsOnce                    // one for the transaction, with the first statement
)

// scan reads a row of tx_read.sql.
func (see *sighting) scan(r interface{ Scan(...any) error }) error {
	var (
		state    int16
		attempt  int32
		left     int64
		owner    bytea
		response bytea
	)
	if err := r.Scan(&owner, &state, &attempt, &left, &response); err != nil {
		return err
	}
	see.exists, see.live, see.owner = true, left > 0, owner
	see.rec = recordOf(state, attempt, duration(left), response)
	return nil
}
