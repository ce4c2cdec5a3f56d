package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// A message says that an order has been paid.
type message struct {
	ID      int64
	Key     string
	OrderNo string
}

// relayBatch is how many messages are delivered in one transaction.
const relayBatch = 10

// relay delivers messages until ctx ends. Any number of relays may run.
func (s *shop) relay(ctx context.Context, deliver func(context.Context, message) error, pause time.Duration) {
	for ctx.Err() == nil {
		n, err := s.relayOnce(ctx, deliver)
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "messages could not be delivered; they stay", "error", err)
		}
		if n == relayBatch && err == nil {
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// relayOnce delivers a batch and returns how many messages it delivered. SKIP
// LOCKED leaves those out that another relay has in hand. Delivery and the mark
// that it has happened cannot be one step, so that after a crash between them a
// message is delivered again: at least once.
func (s *shop) relayOnce(ctx context.Context, deliver func(context.Context, message) error) (n int, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, key, order_no FROM outbox_messages
			WHERE delivered IS NULL ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED`, relayBatch)
		if err != nil {
			return err
		}
		messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[message])
		if err != nil {
			return err
		}
		for _, m := range messages {
			if err := deliver(ctx, m); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE outbox_messages SET delivered = now() WHERE id = $1`, m.ID); err != nil {
				return err
			}
		}
		n = len(messages)
		return nil
	})
	return n, err
}
