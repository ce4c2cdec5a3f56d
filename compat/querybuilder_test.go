package compat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

type bunOrder struct {
	bun.BaseModel `bun:"table:orders"`

	ID        int64 `bun:",pk,autoincrement"`
	Item      string
	SubmitKey string
}

var _ bun.IConn = pgstore.SQL(context.Background())

// Bun takes any connection for a single query: Conn(pgstore.SQL(ctx)).
func TestBunCommitsWithTheResponse(t *testing.T) {
	d := newDatabase(t)
	db := bun.NewDB(d.db, pgdialect.New())
	fail := errors.New("changed my mind")
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		n := s.run()
		ctx, conn := r.Context(), pgstore.SQL(r.Context())
		order := &bunOrder{Item: fmt.Sprint("tea ", n), SubmitKey: replay.Key(ctx)}
		_, err := db.NewInsert().Model(order).Conn(conn).Exec(ctx)
		if n == 1 {
			answerOrder(w, n, errors.Join(err, fail))
			return
		}
		_, e := db.NewUpdate().Model(order).Conn(conn).Set("item = ?", fmt.Sprint("green tea ", n)).WherePK().Exec(ctx)
		d.count("orders", int(n)-2) // nobody else sees it yet
		var all []bunOrder
		err = errors.Join(err, e, db.NewSelect().Model(&all).Conn(conn).Order("id").Scan(ctx))
		if len(all) != int(n)-1 || order.ID == 0 {
			t.Errorf("in the transaction: %+v", all)
		}
		if _, err := db.NewRaw("COMMIT").Conn(conn).Exec(ctx); !errors.Is(err, pgstore.ErrNotYours) {
			t.Errorf("COMMIT: %v, want ErrNotYours", err)
		}
		answerOrder(w, n, err)
	})
	s.answers(request{path: "/orders"}, 500, "changed my mind\n")
	d.count("orders", 0)
	s.runsOnce(request{path: "/orders"}, 201, "order of run %d")
	d.together(2)
	d.count("orders WHERE item LIKE 'green tea %'", 2)
}

// The methods of sqlx's DB and Tx need those types; its functions do without.
func TestSqlxFunctionsCommitWithTheResponse(t *testing.T) {
	d := newDatabase(t)
	type row struct {
		ID        int64
		Item      string
		SubmitKey string `db:"submit_key"`
	}
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		n := s.run()
		ctx, tx := r.Context(), pgstore.SQL(r.Context())
		query, args, err := sqlx.BindNamed(sqlx.DOLLAR, "INSERT INTO orders (item, submit_key) VALUES (:item, :submit_key)",
			row{Item: fmt.Sprint("tea ", n), SubmitKey: replay.Key(ctx)})
		_, e := tx.ExecContext(ctx, query, args...)
		d.count("orders", int(n)-1)
		rows, e2 := tx.QueryContext(ctx, "SELECT id, item, submit_key FROM orders ORDER BY id")
		var all []row
		if e2 == nil {
			e2 = sqlx.StructScan(rows, &all)
			_ = rows.Close()
		}
		if len(all) != int(n) || all[n-1].Item != fmt.Sprint("tea ", n) {
			t.Errorf("in the transaction: %+v", all)
		}
		answerOrder(w, n, errors.Join(err, e, e2))
	})
	s.runsOnce(request{path: "/orders"}, 201, "order of run %d")
	d.together(2)
}
