package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// eventually calls f until it reports true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !f(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func value[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// killOthers ends all sessions of the server but those of pool, which has one.
func killOthers(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	value[int](t, pool, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
}

// A slowCommit is a server on which a COMMIT of orders takes its time, and the
// store goes through a proxy.
type slowCommit struct {
	server *testserver.PostgresServer
	proxy  *testserver.Proxy
	direct *pgxpool.Pool // one connection around the proxy
	store  *pgstore.TxStore
	orders orders
}

func newSlowCommit(t testing.TB, pause string) slowCommit {
	t.Helper()
	server := testserver.StartPostgres(t)
	proxy, through := behind(t, server.URL)
	direct := newPool(t, server.URL, conns(1))
	c := pgstore.Config{}
	if err := pgstore.Migrate(t.Context(), direct, c); err != nil {
		t.Fatal(err)
	}
	_, err := direct.Exec(t.Context(), fmt.Sprintf(`
		CREATE TABLE orders (id bigserial PRIMARY KEY, item text NOT NULL);
		CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE
			over CONSTANT timestamptz := clock_timestamp() + interval '%s seconds';
		BEGIN
			LOOP
				BEGIN
					PERFORM pg_sleep_until(over);
				EXCEPTION WHEN query_canceled THEN
					NULL; -- pgx asks for it when a connection breaks, once or twice
				END;
				EXIT WHEN clock_timestamp() >= over;
			END LOOP;
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()`, pause))
	if err != nil {
		t.Fatal(err)
	}
	pool := newPool(t, through)
	return slowCommit{server, proxy, direct, newTxStore(t, pool, pgstore.TxConfig{Config: c}), orders{"orders", direct}}
}

// sealing begins to seal an order and returns when the server is at the COMMIT.
func (s slowCommit) sealing(t testing.TB) (h replay.Hold, outcome chan error) {
	t.Helper()
	h = mustClaim(t, s.store, claimOf("k"))
	s.orders.place(t, h, "tea")
	outcome = make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		outcome <- h.Seal(ctx, []byte("answer"), time.Hour)
	}()
	eventually(t, "COMMIT is under way", func() bool {
		return value[bool](t, s.direct, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep')")
	})
	return h, outcome
}

func TestCommitWithoutAnAnswerIsResolvedByReading(t *testing.T) {
	tests := map[string]struct {
		pause   string
		spoil   func(testing.TB, slowCommit)
		orders  int
		outcome error
	}{
		"connection cut, commit goes through": {"1", func(_ testing.TB, s slowCommit) { s.proxy.Cut() }, 1, nil},
		"backend killed":                      {"60", func(t testing.TB, s slowCommit) { killOthers(t, s.direct) }, 0, replay.ErrUndone},
		"server killed and started again": {"60", func(t testing.TB, s slowCommit) {
			s.server.Kill()
			if err := s.server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, 0, replay.ErrUndone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSlowCommit(t, tt.pause)
			h, outcome := s.sealing(t)
			tt.spoil(t, s)
			if err := <-outcome; !errors.Is(err, tt.outcome) || (err == nil) != (tt.outcome == nil) {
				t.Errorf("seal: %v, want %v", err, tt.outcome)
			}
			if err := h.Seal(t.Context(), []byte("other"), time.Hour); !errors.Is(err, tt.outcome) || (err == nil) != (tt.outcome == nil) {
				t.Errorf("seal again: %v, want %v", err, tt.outcome)
			}
			eventually(t, "the server is up", func() bool { return s.direct.Ping(t.Context()) == nil })
			if n := s.orders.count(t); n != tt.orders {
				t.Errorf("%d orders, want %d", n, tt.orders)
			}
			rec, err := s.store.Look(t.Context(), "k")
			if want := []replay.State{replay.Free, replay.Done}[tt.orders]; err != nil || rec.State != want {
				t.Errorf("look: %+v, %v; want %v", rec, err, want)
			}
		})
	}
}

func TestCommitThatCannotBeResolvedInTimeIsAnErrorAndCanBeAskedAgain(t *testing.T) {
	s := newSlowCommit(t, "1")
	h := mustClaim(t, s.store, claimOf("k"))
	s.orders.place(t, h, "tea")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := h.Seal(ctx, []byte("answer"), time.Hour)
	if err == nil || errors.Is(err, replay.ErrUndone) || errors.Is(err, replay.ErrLeaseLost) {
		t.Fatalf("seal: %v, want an error that claims to know nothing", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := h.Seal(t.Context(), []byte("answer"), time.Hour); err != nil {
		t.Errorf("seal again: %v", err)
	}
	if n := s.orders.count(t); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
}

func TestKilledBackendsCostNoLeaseAndNoError(t *testing.T) {
	server := testserver.StartPostgres(t)
	killer := newPool(t, server.URL, conns(1))
	pool := newPool(t, server.URL, conns(8))
	c := pgstore.Config{}
	if err := pgstore.Migrate(t.Context(), pool, c); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, pool, c)
	stop := make(chan struct{})
	var wg, workers sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for range 12 {
			killOthers(t, killer)
			<-tick.C
		}
		close(stop)
	})
	var submits atomic.Int32
	for w := range 8 {
		workers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("w%d-%d", w, n)
				h := mustClaim(t, s, claimOf(key))
				if err := h.Extend(t.Context(), time.Minute); err != nil {
					t.Errorf("extend: %v", err)
				}
				if err := h.Seal(t.Context(), []byte(key), time.Hour); err != nil {
					t.Errorf("seal: %v", err)
				}
				submits.Add(1)
			}
		})
	}
	wg.Wait()
	workers.Wait()
	sealed := value[int32](t, killer, "SELECT count(*) FROM submitonce WHERE state = 1 AND attempt = 1")
	if all := value[int32](t, killer, "SELECT count(*) FROM submitonce"); sealed != submits.Load() || all != sealed {
		t.Errorf("%d submits, %d records, of them %d sealed in the first attempt", submits.Load(), all, sealed)
	}
}

// Managed servers end transactions in which nothing happens for a while, such as
// those of handlers that wait for somebody else.
func TestATransactionThatTheServerEndsForIdlenessLeavesNothing(t *testing.T) {
	s, o, _ := txSetup(t)
	h := mustClaim(t, s, claimOf("k"))
	o.place(t, h, "tea")
	if _, err := pgstore.Tx(lend(t, h)).Exec(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server ends the transaction", func() bool {
		rec, err := s.Look(t.Context(), "k")
		return err == nil && rec.State == replay.Free
	})
	if err := h.Seal(t.Context(), []byte("late"), time.Hour); !errors.Is(err, replay.ErrUndone) {
		t.Errorf("seal: %v, want ErrUndone", err)
	}
	h = mustClaim(t, s, claimOf("k"))
	o.place(t, h, "tea")
	if err := h.Seal(t.Context(), []byte("in time"), time.Hour); err != nil {
		t.Errorf("seal of the next try: %v", err)
	}
	if n := o.count(t); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
}

func TestRestartOfTheServerIsOverWhenItIsOver(t *testing.T) {
	server := testserver.StartPostgres(t)
	pool := newPool(t, server.URL, conns(8))
	c := pgstore.Config{}
	if err := pgstore.Migrate(t.Context(), pool, c); err != nil {
		t.Fatal(err)
	}
	leases, txs := newStore(t, pool, c), newTxStore(t, pool, pgstore.TxConfig{Config: c})
	var (
		wg   sync.WaitGroup
		runs sync.Map // key to *atomic.Int32
		stop = make(chan struct{})
		done atomic.Int32
	)
	submit := func(s replay.Store, key string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
		rec, h, err := s.Claim(ctx, claimOf(key))
		cancel()
		if err != nil {
			return err
		}
		if rec.State == replay.Done {
			return nil
		}
		if h == nil {
			return errors.New("pending")
		}
		if _, ok := h.(replay.Lender); !ok { // what a transaction ran is undone with it
			n, _ := runs.LoadOrStore(key, new(atomic.Int32))
			n.(*atomic.Int32).Add(1)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		err = h.Seal(ctx, []byte(key), time.Hour)
		cancel()
		if err != nil {
			return err
		}
		done.Add(1)
		return nil
	}
	for w := range 8 {
		s, kind := replay.Store(leases), "lease"
		if w%2 == 1 {
			s, kind = txs, "tx"
		}
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("%s-%d-%d", kind, w/4, n) // two workers on each
				_ = submit(s, key)                           // refused while the server is away
			}
		})
	}
	moreAre := func(what string) {
		before := done.Load()
		eventually(t, what, func() bool { return done.Load() > before+50 })
	}
	moreAre("submits before the restart")
	for _, end := range []func(){server.Stop, server.Kill} {
		end()
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		moreAre("submits after the restart")
	}
	close(stop)
	wg.Wait()
	runs.Range(func(key, n any) bool {
		if n := n.(*atomic.Int32).Load(); n > 1 {
			t.Errorf("%v ran %d times", key, n)
		}
		return true
	})
}

func TestWaitersSurviveTheLossOfTheListener(t *testing.T) {
	server := testserver.StartPostgres(t)
	killer := newPool(t, server.URL, conns(1))
	pool := newPool(t, server.URL)
	c := pgstore.Config{}
	if err := pgstore.Migrate(t.Context(), killer, c); err != nil {
		t.Fatal(err)
	}
	ours, theirs := newStore(t, newPool(t, server.URL), c), newStore(t, pool, c)
	for i := range 5 {
		key := fmt.Sprint(i)
		h := mustClaim(t, ours, claimOf(key))
		ch := watch(t, theirs, key)
		killOthers(t, killer)
		if i%2 == 0 { // with the listener back, or on the way
			eventually(t, "the listener marks again", func() bool {
				return value[bool](t, killer, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock')")
			})
			for len(ch) > 0 {
				<-ch // the new session wakes everybody
			}
		}
		if err := h.Seal(t.Context(), nil, time.Hour); err != nil {
			t.Fatal(err)
		}
		within(t, "sealed", ch, 2*time.Second)
	}
}

// A logbook is a logger and what it wrote.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), s)
}

func TestDeafnessBehindAPoolerIsToldOnce(t *testing.T) {
	bouncer := testserver.StartPgBouncer(t, testserver.StartPostgres(t))
	pool := newPool(t, bouncer.URL, execMode(pgx.QueryExecModeExec))
	book := new(logbook)
	c := newTable(t, pool, pgstore.Config{Logger: slog.New(slog.NewTextHandler(book, nil))})
	s := newStore(t, pool, c)
	h := mustClaim(t, newStore(t, pool, c), claimOf("k"))
	ch := watch(t, s, "k")
	eventually(t, "the warning", func() bool { return book.count("LISTEN hears nothing") > 0 })
	if err := h.Seal(t.Context(), nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	within(t, "sealed", ch, time.Second)
	watch(t, s, "another")
	if n := book.count("level=WARN"); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
}
