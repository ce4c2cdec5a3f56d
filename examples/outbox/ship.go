package main

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/submitonce/submitonce/replay/pgstore"
)

// ship receives a message and sends the parcel, once however often the message
// comes: by the same store and in the same way as the payment, without HTTP. The
// parcel and the note that it was sent commit in one transaction. In production
// this is another process, behind a queue.
func (s *shop) ship(ctx context.Context, m message) error {
	parcel, again, err := s.once.Do(ctx, m.Key, func(ctx context.Context) ([]byte, error) {
		var id int64
		err := pgstore.Tx(ctx).QueryRow(ctx,
			`INSERT INTO outbox_parcels (order_no) VALUES ($1) RETURNING id`, m.OrderNo).Scan(&id)
		return strconv.AppendInt(nil, id, 10), err
	})
	if err != nil {
		return err
	}
	slog.InfoContext(ctx, "parcel", "order_no", m.OrderNo, "parcel", string(parcel), "message_came_again", again)
	return nil
}
