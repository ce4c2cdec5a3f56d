package pgstore_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// behind returns a proxy in front of a server, and the URL that leads through it.
func behind(t testing.TB, server string) (*testserver.Proxy, string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p := testserver.StartProxy(t, u.Host)
	u.Host = p.Addr
	return p, u.String()
}

// trips returns how many round trips f makes.
func trips(t testing.TB, p *testserver.Proxy, f func()) int64 {
	t.Helper()
	before := p.Trips()
	f()
	return p.Trips() - before
}

func TestLeaseSubmitTakesTwoRoundTripsAndADuplicateOne(t *testing.T) {
	for name, mode := range map[string]pgx.QueryExecMode{
		"cached statements": pgx.QueryExecModeCacheStatement,
		"exec":              pgx.QueryExecModeExec,
		"simple protocol":   pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(name, func(t *testing.T) {
			p, through := behind(t, serverURL(t))
			pool := newPool(t, through, execMode(mode), conns(1))
			s := newStore(t, pool, newTable(t, pool, pgstore.Config{}))
			submit := func(key string) (claim, seal, duplicate int64) {
				var h replay.Hold
				claim = trips(t, p, func() { h = mustClaim(t, s, claimOf(key)) })
				seal = trips(t, p, func() {
					if err := h.Seal(t.Context(), []byte(key), time.Hour); err != nil {
						t.Fatal(err)
					}
				})
				duplicate = trips(t, p, func() {
					if rec, _, err := s.Claim(t.Context(), claimOf(key)); err != nil || rec.State != replay.Done {
						t.Fatalf("%+v, %v", rec, err)
					}
				})
				return claim, seal, duplicate
			}
			submit("first") // prepares
			if claim, seal, duplicate := submit("second"); claim != 1 || seal != 1 || duplicate != 1 {
				t.Errorf("claim %d, seal %d, duplicate %d round trips, want 1 each", claim, seal, duplicate)
			}
		})
	}
}

func TestTxSubmitTakesTheRoundTripsOfTheHandlersOwnTransaction(t *testing.T) {
	for name, mode := range map[string]pgx.QueryExecMode{
		"cached statements": pgx.QueryExecModeCacheStatement,
		"simple protocol":   pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(name, func(t *testing.T) {
			p, through := behind(t, serverURL(t))
			pool := newPool(t, through, execMode(mode), conns(1))
			c := newTable(t, pool, pgstore.Config{})
			o := newOrders(t, pool, c)
			s := newTxStore(t, pool, pgstore.TxConfig{Config: c})
			handler := func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), o.insert(), "tea")
				return err
			}
			with := func(key string) int64 {
				return trips(t, p, func() {
					h := mustClaim(t, s, claimOf(key))
					if err := handler(pgstore.Tx(lend(t, h))); err != nil {
						t.Fatal(err)
					}
					if err := h.Seal(t.Context(), nil, time.Hour); err != nil {
						t.Fatal(err)
					}
				})
			}
			without := func() int64 {
				return trips(t, p, func() {
					if err := pgx.BeginFunc(t.Context(), pool, handler); err != nil {
						t.Fatal(err)
					}
				})
			}
			with("first") // prepares
			without()
			if with, without := with("second"), without(); with != 3 || without != 3 {
				t.Errorf("%d round trips with us, %d without, want 3", with, without)
			}
		})
	}
}

func TestTxDuplicateTakesOneRoundTripWhereItWasSealedAndElsewhereTwo(t *testing.T) {
	p, through := behind(t, serverURL(t))
	pool := newPool(t, through, conns(1))
	c := newTable(t, pool, pgstore.Config{})
	ours := newTxStore(t, pool, pgstore.TxConfig{Config: c})
	theirs := newTxStore(t, pool, pgstore.TxConfig{Config: c}) // has seen none of it
	for _, key := range []string{"prepares", "k"} {
		if err := mustClaim(t, ours, claimOf(key)).Seal(t.Context(), []byte("x"), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	duplicate := func(s replay.Store, key string) int64 {
		return trips(t, p, func() {
			if rec, _, err := s.Claim(t.Context(), claimOf(key)); err != nil || rec.State != replay.Done {
				t.Fatalf("%+v, %v", rec, err)
			}
		})
	}
	duplicate(ours, "prepares")
	duplicate(theirs, "prepares")
	for i, want := range []int64{2, 1, 1} {
		if n := duplicate(theirs, "k"); n != want {
			t.Errorf("duplicate %d in another process: %d round trips, want %d", i+1, n, want)
		}
	}
	if n := duplicate(ours, "k"); n != 1 {
		t.Errorf("duplicate in the process that sealed it: %d round trips, want 1", n)
	}
}

// Floor: the same handler in a transaction of its own, 0.5 ms a round trip.
func BenchmarkTxFirstSubmitOverNetwork(b *testing.B) {
	p, through := behind(b, serverURL(b))
	setup := setUpBench(b, through)
	p.Delay(250 * time.Microsecond)
	b.Cleanup(func() { p.Delay(0) })
	compareTx(b, 1, setup)
}

// readOnlyAtFirst makes the first n connections those of a server that has been
// demoted.
func readOnlyAtFirst(n int) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) {
		made := make(chan struct{}, n)
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			select {
			case made <- struct{}{}:
				_, err := conn.Exec(ctx, "SET default_transaction_read_only = on")
				return err
			default:
				return nil
			}
		}
	}
}

func TestConnectionsOfADemotedServerAreGivenUp(t *testing.T) {
	plain := newPool(t, serverURL(t))
	c := newTable(t, plain, pgstore.Config{})
	for name, open := range map[string]func(*pgxpool.Pool) replay.Store{
		"lease":         func(p *pgxpool.Pool) replay.Store { return newStore(t, p, c) },
		"transactional": func(p *pgxpool.Pool) replay.Store { return newTxStore(t, p, pgstore.TxConfig{Config: c}) },
	} {
		t.Run(name, func(t *testing.T) {
			const stale = 4
			pool := newPool(t, serverURL(t), readOnlyAtFirst(stale), conns(stale))
			var held []*pgxpool.Conn
			for range stale {
				conn, err := pool.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, conn)
			}
			for _, conn := range held {
				conn.Release()
			}
			s := open(pool)
			h := mustClaim(t, s, claimOf(name))
			if err := h.Seal(t.Context(), nil, time.Hour); err != nil && name == "lease" {
				t.Errorf("seal: %v", err)
			}
		})
	}
}
