package pgstore_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

func ExampleNew() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://shop@localhost/shop")
	if err != nil {
		panic(err)
	}
	defer pool.Close()

	c := pgstore.Config{Schema: "shop", Table: "submits"}
	if err := pgstore.Migrate(ctx, pool, c); err != nil {
		panic(err)
	}
	store, err := pgstore.New(pool, c)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	go func() { _ = replay.Sweep(ctx, store, 10*time.Minute) }()
}

// A handler that writes its order in the transaction of the guard: the order and
// the response exist both or not at all.
func ExampleTx() {
	order := func(w http.ResponseWriter, r *http.Request) {
		_, err := pgstore.Tx(r.Context()).Exec(r.Context(),
			"INSERT INTO orders (item) VALUES ($1)", r.FormValue("item"))
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError) // rolls back
			return
		}
		w.WriteHeader(http.StatusCreated) // commits
	}
	_ = order
}

// Outside a guard on a TxStore there is no transaction, and everything says so.
func ExampleTx_missing() {
	_, err := pgstore.Tx(context.Background()).Exec(context.Background(), "SELECT 1")
	fmt.Println(err)
	// Output: pgstore: no transaction in this context
}

func ExampleNewTx() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://shop@localhost/shop")
	if err != nil {
		panic(err)
	}
	defer pool.Close()

	store, err := pgstore.NewTx(pool, pgstore.TxConfig{})
	if err != nil {
		panic(err)
	}
	defer store.Close()

	once, err := replay.NewOnce(store, replay.OnceConfig{Name: "transfer", Reruns: 2})
	if err != nil {
		panic(err)
	}
	receipt, replayed, err := once.Do(ctx, "payment-4711", func(ctx context.Context) ([]byte, error) {
		_, err := pgstore.Tx(ctx).Exec(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 1")
		return []byte("receipt"), err
	})
	fmt.Println(string(receipt), replayed, err)
}
