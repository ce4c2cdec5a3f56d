package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
)

// A hold is a claim won by lease. All its state is in the table.
type hold struct {
	store *Store
	key   string
	owner replay.Owner
}

// Extend implements [replay.Hold].
func (h *hold) Extend(ctx context.Context, lease time.Duration) error {
	s := h.store
	return s.do(ctx, "extend", func(conn *pgxpool.Conn) error {
		tag, err := conn.Exec(ctx, s.extend, s.args([]byte(h.key), h.owner[:], lease)...)
		if err == nil && tag.RowsAffected() == 0 {
			return replay.ErrLeaseLost
		}
		return err
	})
}

// Seal implements [replay.Hold] in one round trip, or two if the record is no
// longer this hold's.
func (h *hold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	s := h.store
	if response == nil {
		response = []byte{}
	}
	args := [][]byte{[]byte(h.key), h.owner[:], response, interval(retention),
		bigint(lock(s.marked, h.key)), payload(h.key)}
	err := s.do(ctx, "seal", func(conn *pgxpool.Conn) error {
		calls := []call{{statement: s.seal, args: args}}
		if _, err := s.send(ctx, conn.Conn(), calls...); err != nil || calls[0].tag.RowsAffected() == 1 {
			return err
		}
		// Lost, unless this is the repetition of a seal that had its effect.
		var sealed int64
		err := conn.QueryRow(ctx, s.sealed, s.args([]byte(h.key), h.owner[:])...).Scan(&sealed)
		if err == nil && sealed == 0 {
			return replay.ErrLeaseLost
		}
		return err
	})
	if err == nil {
		s.finished.add(h.key)
		s.watches.tell(h.key)
	}
	return err
}

// Release implements [replay.Hold] in one round trip.
func (h *hold) Release(ctx context.Context) error {
	s := h.store
	mark, name := lock(s.marked, h.key), payload(h.key)
	err := s.do(ctx, "release", func(conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, s.release, s.args([]byte(h.key), h.owner[:], mark, name)...)
		return err
	})
	if err == nil {
		s.watches.tell(h.key)
	}
	return err
}
