package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/submitonce/submitonce/replay"
)

// A txHold is a claim that lives in an open transaction.
type txHold struct {
	store    *TxStore
	key      string
	owner    replay.Owner
	lock     int64 // what the transaction holds
	attempt  int
	conn     *session
	pid      int32 // of the server's side of conn
	occupied bool  // an expired record was seen
	tx       *lentTx

	mu    sync.Mutex
	state txState // guarded by mu
	why   error   // what Seal returns from now on, if ended; guarded by mu
}

type txState int

const (
	txOpen    txState = iota
	txSealed          // committed
	txEnded           // rolled back, or lost
	txUnknown         // COMMIT was sent and not answered
)

// Lend implements [replay.Lender]. The handler takes the transaction out with
// [Tx] or [SQL].
func (h *txHold) Lend(ctx context.Context) context.Context {
	return context.WithValue(ctx, lentKey{}, h)
}

// Extend implements [replay.Hold]. There is no lease to extend.
func (h *txHold) Extend(context.Context, time.Duration) error {
	if h.store.isClosed() {
		return replay.ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != txOpen {
		return replay.ErrLeaseLost
	}
	return nil
}

// Seal implements [replay.Hold]. It stores the response and commits, in one
// round trip. It returns nil only if the commit is certain, and
// [replay.ErrUndone] or [replay.ErrLeaseLost] only if the rollback is. If the
// answer to COMMIT is lost, it finds out which through another connection, for as
// long as ctx lasts; Seal may be called again to go on finding out.
func (h *txHold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.state {
	case txSealed:
		return nil
	case txEnded:
		return h.why
	case txUnknown:
		return h.resolve(ctx, errors.New("no answer to COMMIT"))
	}
	if h.store.isClosed() {
		return replay.ErrClosed
	}
	if ctx.Err() != nil { // nothing is lost yet
		return fmt.Errorf("pgstore: seal: %w", context.Cause(ctx))
	}
	h.tx.end()
	alone := false
	switch conn := h.conn.pgx; {
	case conn.IsClosed():
		h.conn.drop()
		return h.undone(errors.New("the connection broke before COMMIT"))
	case conn.PgConn().TxStatus() == 'E':
		h.conn.rollBack()
		return h.undone(errors.New("an SQL error has aborted the transaction"))
	case conn.PgConn().TxStatus() != 'T':
		// The work stands or not by the handler's own doing. If its answer is kept at
		// least, no duplicate works on top of that.
		h.store.log.LogAttrs(ctx, slog.LevelError, "submitonce: the handler has ended its transaction by itself;"+
			" the response is stored apart from its work, which a crash in between would repeat", slog.String("key", h.key))
		alone = true
	}
	if response == nil {
		response = []byte{}
	}
	insert, err := h.commit(ctx, alone, response, retention)
	return h.judge(ctx, insert, err)
}

// commit sends the record and COMMIT, in a transaction of their own if they are
// alone. If it fails, it says whether it was the record.
func (h *txHold) commit(ctx context.Context, alone bool, response []byte, retention time.Duration) (insert bool, err error) {
	s := h.store
	calls := make([]call, 0, 4)
	if alone {
		calls = append(calls, call{statement: s.start})
	}
	if h.occupied {
		calls = append(calls, call{statement: s.clear, args: [][]byte{[]byte(h.key)}})
	}
	calls = append(calls, call{statement: s.seal, args: [][]byte{
		[]byte(h.key), h.owner[:], bigint(int64(h.attempt)), interval(retention), response,
		bigint(lock(s.marked, h.key)), payload(h.key),
	}}, call{statement: s.commit})
	// Nothing in this transaction can be repeated without the handler, so behind a
	// pooler it must not ask for a statement that the session might not have, or
	// might have from another client.
	named := s.named() && !isPooled(h.conn.pgx, h.pid)
	failed, err := s.sendAs(ctx, h.conn.pgx, named, calls)
	if err == nil && calls[len(calls)-1].tag.String() != "COMMIT" {
		err = errRolledBack
	}
	return failed == len(calls)-2, err
}

// errRolledBack means that COMMIT was carried out as ROLLBACK.
var errRolledBack = errors.New("COMMIT was carried out as ROLLBACK")

// judge ends the hold by what came of commit.
func (h *txHold) judge(ctx context.Context, insert bool, err error) error {
	if err == nil {
		h.conn.release()
		h.sealed()
		return nil
	}
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && isRefusal(pg) || errors.Is(err, errRolledBack):
		h.conn.rollBack()
		if pg != nil && insert && pg.Code == "23505" { // unique_violation: a record stands
			return h.ended(fmt.Errorf("pgstore: seal: %w", replay.ErrLeaseLost))
		}
		return h.undone(err)
	case errors.Is(err, errUnsent):
		h.conn.drop()
		return h.undone(err)
	}
	h.conn.drop()
	h.state = txUnknown
	return h.resolve(ctx, err)
}

// isRefusal reports whether the server itself says that a statement failed, and
// goes on: then the transaction is rolled back, or can only be. A pooler that has
// lost its server says ERROR too, but without the untranslated severity or with a
// code of class 08.
func isRefusal(err *pgconn.PgError) bool {
	return err.SeverityUnlocalized == "ERROR" && !strings.HasPrefix(err.Code, "08")
}

func (h *txHold) sealed() {
	h.state = txSealed
	h.store.finished.add(h.key)
	h.forget()
	h.store.watches.tell(h.key)
}

func (h *txHold) undone(cause error) error {
	return h.ended(fmt.Errorf("pgstore: seal: %w: %w", replay.ErrUndone, cause))
}

func (h *txHold) ended(why error) error {
	h.state, h.why = txEnded, why
	h.forget()
	h.store.watches.tell(h.key)
	return why
}

// forget takes the hold off the list of those that are open.
func (h *txHold) forget() {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	delete(h.store.open, h)
}

// cut rolls back by closing the connection, whatever the handler is at.
func (h *txHold) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != txOpen {
		return
	}
	_ = h.conn.pgx.PgConn().Conn().Close() // safe beside a query, which fails
	h.tx.end()
	h.conn.drop()
	_ = h.ended(replay.ErrClosed)
}

// Release implements [replay.Hold] by ROLLBACK. It returns [replay.ErrUndone] if
// the transaction had been lost to another one already. Where a COMMIT was not
// answered it does nothing, because there may be nothing to roll back any more.
func (h *txHold) Release(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != txOpen {
		return nil
	}
	h.tx.end()
	var lost error
	if h.conn.pgx.PgConn().TxStatus() == 'E' {
		lost = h.tx.lost()
	}
	h.state, h.why = txEnded, fmt.Errorf("pgstore: seal: %w", replay.ErrLeaseLost)
	h.forget()
	s := h.store
	// What a transaction notifies is lost with it, so this comes after its end.
	err := h.conn.exec(ctx, fmt.Sprintf("ROLLBACK; SELECT CASE WHEN NOT pg_try_advisory_xact_lock(%d)"+
		" THEN pg_notify('%s', '%s') END", lock(s.marked, h.key), s.channel, payloadText(h.key)))
	if err != nil {
		h.conn.drop()
		return fmt.Errorf("pgstore: release: %w", err)
	}
	h.conn.release()
	s.watches.tell(h.key)
	if lost != nil {
		return fmt.Errorf("pgstore: release: %w: %w", replay.ErrUndone, lost)
	}
	return nil
}
