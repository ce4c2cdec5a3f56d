package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/submitonce/submitonce/internal/testserver"
)

// durable names the stores whose orders outlive the shop.
var durable = []string{"postgres", "postgres-tx", "sqlite", "tiered"}

// everyDurable runs f for each of them, in a database of its own.
func everyDurable(t *testing.T, f func(t *testing.T, o options)) {
	t.Helper()
	for _, store := range durable {
		t.Run(store, func(t *testing.T) {
			o := options{framework: "nethttp", store: store}
			if store == "sqlite" {
				o.sqliteFile = filepath.Join(t.TempDir(), "shop #1.db")
			} else {
				o.databaseURL = newDatabase(t)
			}
			if store == "tiered" {
				o.redisURL = testserver.Redis(t)
			}
			f(t, o)
		})
	}
}

// newDatabase makes a database and returns its URL.
func newDatabase(t *testing.T) string {
	t.Helper()
	server := testserver.Postgres(t)
	name := "shop_" + strings.ToLower(rand.Text()[:10])
	admin := func(ctx context.Context, sql string) {
		t.Helper()
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	admin(t.Context(), "CREATE DATABASE "+name)
	t.Cleanup(func() { admin(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

func TestShopsOnOneDatabaseShareTheirOrders(t *testing.T) {
	everyDurable(t, func(t *testing.T, o options) {
		var shops []*client
		for _, framework := range frameworks {
			o.framework = framework
			shops = append(shops, newClient(t, newTestServer(t, o)))
		}
		token := shops[0].token("form=order")
		answers := make([]answer, 30)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				answers[i] = shops[i%len(shops)].order(token, asJSON, `{"item":"vase","quantity":2}`, "X-Demo-Delay", "200ms")
			})
		}
		wg.Wait()
		for _, a := range answers {
			shops[0].want(a, http.StatusCreated, answers[0].body)
		}
		for _, s := range shops {
			s.wantOrders(1)
			s.want(s.get("/orders/"+orderIn(t, answers[0]).No, "Accept", asJSON), http.StatusOK, answers[0].body)
		}

		// Another shop, opened later, knows both the order and the answer.
		later := newClient(t, newTestServer(t, o))
		again := later.order(token, asJSON, `{"item":"vase","quantity":2}`)
		later.want(again, http.StatusCreated, answers[0].body)
		if !again.replayed() {
			t.Error("a shop that opened later did not answer with a replay")
		}
		later.wantOrders(1)
	})
}

func TestRefusedOrderLeavesNothingInTheDatabase(t *testing.T) {
	everyDurable(t, func(t *testing.T, o options) {
		for _, framework := range frameworks {
			t.Run(framework, func(t *testing.T) {
				o.framework = framework
				c := newClient(t, newTestServer(t, o))
				before := len(c.orders())
				token := c.token("form=order")
				c.want(c.order(token, asJSON, `{"item":"mug","quantity":0}`), http.StatusUnprocessableEntity)
				c.want(c.order(token, asForm, "item=mug&quantity=0", "Accept", acceptPage), http.StatusUnprocessableEntity, "Order at least 1.")
				c.wantOrders(before)
				c.want(c.order(token, asForm, "item=mug&quantity=1", "Accept", acceptPage), http.StatusSeeOther)
				c.wantOrders(before + 1)
			})
		}
	})
}

func TestManyOrdersAtOnceDoNotRunThePoolDry(t *testing.T) {
	everyDurable(t, func(t *testing.T, o options) {
		c := newClient(t, newTestServer(t, o))
		var wg sync.WaitGroup
		for range 12 {
			token := c.token("form=order")
			for range 4 {
				wg.Go(func() {
					c.want(c.order(token, asForm, "item=mug&quantity=0", "Accept", acceptPage), http.StatusUnprocessableEntity)
					c.want(c.order(token, asJSON, `{"item":"mug","quantity":1}`, "X-Demo-Delay", "20ms"), http.StatusCreated)
				})
			}
		}
		wg.Wait()
		c.wantOrders(12)
	})
}

func TestBookKeepsOneOrderPerSubmit(t *testing.T) {
	everyBook(t, func(t *testing.T, b book) {
		first, fresh, err := b.place(t.Context(), "key", order{Item: "mug", Quantity: 1})
		if err != nil || !fresh || first.No == "" {
			t.Fatalf("place = %v, %v, %v; want a fresh order", first, fresh, err)
		}
		again, fresh, err := b.place(t.Context(), "key", order{Item: "vase", Quantity: 2})
		if err != nil || fresh || again != first {
			t.Errorf("place again = %v, %v, %v; want %v, which stands", again, fresh, err, first)
		}
		other, _, err := b.place(t.Context(), "another key", order{Item: "vase", Quantity: 2})
		if err != nil {
			t.Fatal(err)
		}
		orders, err := b.list(t.Context())
		if err != nil || len(orders) != 2 || orders[0] != first || orders[1] != other {
			t.Errorf("list = %v, %v; want %v and %v", orders, err, first, other)
		}
		if found, ok, err := b.find(t.Context(), other.No); err != nil || !ok || found != other {
			t.Errorf("find = %v, %v, %v; want %v", found, ok, err, other)
		}
		if _, ok, err := b.find(t.Context(), "OF-NONE"); err != nil || ok {
			t.Errorf("find of no order = %v, %v; want false", ok, err)
		}
	})
}

// everyBook runs f on an empty book of each kind.
func everyBook(t *testing.T, f func(t *testing.T, b book)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { f(t, newMemoryBook()) })
	everyDurable(t, func(t *testing.T, o options) {
		if o.store == "postgres-tx" {
			return // writes through the handler's transaction
		}
		b, err := openBackend(t.Context(), o, discard)
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		f(t, b.book)
	})
}

func TestServerThatCannotBeReachedIsNamed(t *testing.T) {
	// Port 1 is the tcpmux of 1988; nobody listens there.
	for store, want := range map[string]string{
		"redis":       "cannot reach Redis at 127.0.0.1:1",
		"postgres":    "cannot reach PostgreSQL at 127.0.0.1:1",
		"postgres-tx": "cannot reach PostgreSQL at 127.0.0.1:1",
		"tiered":      "cannot reach Redis at 127.0.0.1:1",
	} {
		t.Run(store, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"-addr", "127.0.0.1:0", "-store", store,
				"-redis-url", "redis://127.0.0.1:1", "-database-url", "postgres://shop:hush@127.0.0.1:1/shop"}, &out, &errs)
			if code != 1 {
				t.Errorf("exit status %d, want 1", code)
			}
			for _, want := range []string{want, "docker compose -f examples/orderform/compose.yaml up -d", "-url"} {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("the message does not have %q: %s", want, errs.String())
				}
			}
			if strings.Contains(errs.String(), "hush") {
				t.Errorf("the message shows the password: %s", errs.String())
			}
		})
	}
}
