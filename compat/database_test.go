package compat

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// A database is a schema of its own, with the tables of a small shop and the
// store's.
type database struct {
	*testing.T
	pool *pgxpool.Pool
	db   *sql.DB // the same connections
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	c, err := pgxpool.ParseConfig(testserver.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	schema := "compat_" + strings.ToLower(rand.Text()[:12])
	c.ConnConfig.RuntimeParams["search_path"] = schema
	c.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	d := &database{T: t, pool: pool, db: stdlib.OpenDBFromPool(pool)}
	t.Cleanup(func() { _ = d.db.Close() })
	d.exec("CREATE SCHEMA " + schema)
	t.Cleanup(func() { d.exec("DROP SCHEMA " + schema + " CASCADE") })
	d.exec(`CREATE TABLE orders (id bigserial PRIMARY KEY, item text NOT NULL UNIQUE, submit_key text NOT NULL UNIQUE)`)
	d.exec(`CREATE TABLE lines (id bigserial PRIMARY KEY, order_id bigint NOT NULL REFERENCES orders, text text NOT NULL)`)
	if err := pgstore.Migrate(t.Context(), pool, pgstore.Config{}); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *database) exec(sql string) {
	d.Helper()
	if _, err := d.pool.Exec(context.Background(), sql); err != nil {
		d.Errorf("%s: %v", sql, err)
	}
}

// count checks what SELECT count(*) FROM says, through a connection beside the
// handlers'.
func (d *database) count(from string, want int) {
	d.Helper()
	var n int
	if err := d.pool.QueryRow(context.Background(), "SELECT count(*) FROM "+from).Scan(&n); err != nil || n != want {
		d.Errorf("%d %s, %v; want %d", n, from, err, want)
	}
}

// shop returns a shop whose guard keeps its records in the handler's transaction,
// and serves POST /orders by h.
func (d *database) shop(h func(s *shop, w http.ResponseWriter, r *http.Request)) *shop {
	d.Helper()
	return d.shopWith(pgstore.TxConfig{}, replay.Config{}, h)
}

func (d *database) shopWith(tc pgstore.TxConfig, c replay.Config, h func(s *shop, w http.ResponseWriter, r *http.Request)) *shop {
	d.Helper()
	tc.Logger = slog.New(slog.DiscardHandler)
	tc.DB = d.db
	store, err := pgstore.NewTx(d.pool, tc)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = store.Close() })
	s := newShopOn(d.T, store, c)
	app := http.NewServeMux()
	app.Handle("POST /orders", s.once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h(s, w, r) })))
	s.serve(app)
	return s
}

// together checks that each order and the record of its response were written by
// one transaction: the server notes in each row which one that was.
func (d *database) together(want int) {
	d.Helper()
	d.count("orders JOIN submitonce s ON s.xmin = orders.xmin AND s.state = 1", want)
	d.count("orders", want)
	d.count("submitonce", want)
}

// refusesUnique reports whether err is what PostgreSQL says of a value that is
// there already.
func refusesUnique(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505"
}
