package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
)

// errRunning means that the server is still at the old transaction.
var errRunning = errors.New("the transaction is still running")

// resolve finds out through other connections what became of a COMMIT that was
// not answered. h.mu is held.
func (h *txHold) resolve(ctx context.Context, cause error) error {
	s := h.store
	for n := 1; ; n++ {
		var see sighting
		err := s.do(ctx, "resolve", func(conn *pgxpool.Conn) (err error) {
			see, err = h.outcome(ctx, conn)
			return err
		})
		ours := see.exists && string(see.owner) == string(h.owner[:])
		switch {
		case err == nil && ours && see.rec.State == replay.Done:
			h.sealed()
			return nil
		case err == nil && see.live && !ours:
			return h.ended(fmt.Errorf("pgstore: seal: %w", replay.ErrLeaseLost))
		case err == nil:
			return h.undone(cause)
		case !errors.Is(err, errRunning) && faultOf(err) == final,
			!s.sleep(ctx, backoff(n, 2*time.Millisecond, 100*time.Millisecond)):
			return fmt.Errorf("pgstore: seal: not known whether it was committed: %w", errors.Join(cause, err))
		}
	}
}

// outcome reads the record, once it is certain that the old transaction is over:
// while it runs, its session holds the lock of the key.
func (h *txHold) outcome(ctx context.Context, conn *pgxpool.Conn) (see sighting, err error) {
	s := h.store
	var primary, running bool
	if err := conn.QueryRow(ctx, s.ended, s.args(h.lock, int64(h.pid))...).Scan(&primary, &running); err != nil {
		return see, err
	}
	if !primary || running {
		return see, errRunning // a standby may not have heard yet
	}
	err = see.scan(conn.QueryRow(ctx, s.read.text, s.args([]byte(h.key))...))
	if noRow(err) {
		return see, nil
	}
	return see, err
}
