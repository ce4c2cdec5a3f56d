package main

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
	"github.com/submitonce/submitonce/token"
)

//go:embed schema.sql
var schema string

// A shop has orders that are paid once and shipped once.
type shop struct {
	pool  *pgxpool.Pool
	store *pgstore.TxStore
	once  *replay.Once // for what messages ask for
}

func openShop(ctx context.Context, pool *pgxpool.Pool) (*shop, error) {
	if err := pgstore.Migrate(ctx, pool, pgstore.Config{}); err != nil {
		return nil, err
	}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, schema)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make the tables: %w", err)
	}
	store, err := pgstore.NewTx(pool, pgstore.TxConfig{})
	if err != nil {
		return nil, err
	}
	once, err := replay.NewOnce(store, replay.OnceConfig{Name: "receipt"})
	if err != nil {
		_ = store.Close() // the first error is the one that counts
		return nil, err
	}
	return &shop{pool, store, once}, nil
}

func (s *shop) close() error { return s.store.Close() }

// open makes an order that waits for its payment.
func (s *shop) open(ctx context.Context, no string) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO outbox_orders VALUES ($1, 'WAIT_PAY')`, no)
	return err
}

func (s *shop) handler(secret []byte) (http.Handler, error) {
	ring, err := token.NewKeyring(secret)
	if err != nil {
		return nil, err
	}
	tokens, err := token.New(ring, token.Config{})
	if err != nil {
		return nil, err
	}
	guard, err := replay.New(s.store, replay.Config{Tokens: tokens})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /submit-token", tokens.Handler())
	mux.Handle("POST /orders/{no}/pay", nethttp.Middleware(guard)(http.HandlerFunc(s.pay)))
	return mux, nil
}

// pay runs in a transaction that the guard has begun, and commits with the
// answer. Two submits with different tokens are no duplicates of each other, so
// the state of the order decides between them: the update says whether it was
// still waiting, and nothing is read before.
func (s *shop) pay(w http.ResponseWriter, r *http.Request) {
	ctx, no := r.Context(), r.PathValue("no")
	tx := pgstore.Tx(ctx)
	tag, err := tx.Exec(ctx, `UPDATE outbox_orders SET status = 'PAID' WHERE order_no = $1 AND status = 'WAIT_PAY'`, no)
	if err != nil {
		http.Error(w, "the payment could not be made", http.StatusInternalServerError)
		return
	}
	if tag.RowsAffected() == 0 {
		http.Error(w, "the order does not wait for a payment", http.StatusConflict)
		return
	}
	// The message exists if and only if the order is paid. A message queue, which
	// this transaction does not reach, could not promise that.
	_, err = tx.Exec(ctx, `INSERT INTO outbox_messages (key, order_no) VALUES ($1, $2)`, "paid "+no, no)
	if err != nil {
		http.Error(w, "the payment could not be made", http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "order %s is paid\n", no)
}
