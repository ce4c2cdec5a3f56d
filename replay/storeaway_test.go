package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// An eventLog gathers the kinds of events.
type eventLog struct {
	mu     sync.Mutex
	events []replay.Event
}

func (l *eventLog) observe(_ context.Context, e replay.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *eventLog) kinds() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	kinds := make([]string, len(l.events))
	for i, e := range l.events {
		kinds[i] = string(e.Kind)
	}
	return strings.Join(kinds, " ")
}

func failFirst(n int, call string) func(string) error {
	return func(c string) error {
		if c == call && n != 0 {
			n--
			return errAway
		}
		return nil
	}
}

func TestStoreAwayAtTheClaim(t *testing.T) {
	store := &countingStore{Store: newMemstore(t)}
	store.onCall(failFirst(2, "claim"))
	var log eventLog
	g := newGuard(t, store, replay.Config{Observe: log.observe})
	tok := freshToken(t)
	for range 2 {
		w := serve(g, t.Context(), tok, "{}", func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
		problemCode(t, "the client", w, 503, "store-unavailable")
		if w.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if strings.Contains(w.Body.String(), errAway.Error()) {
			t.Errorf("the answer shows the store's error: %s", w.Body)
		}
	}
	answer(t, "the retry", serve(g, t.Context(), tok, "{}", created("order 1")), 201, "order 1", false)
	if got, want := log.kinds(), "store_error refused store_error refused claimed sealed"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestFailOpenRunsUnguarded(t *testing.T) {
	store := &countingStore{Store: newMemstore(t)}
	store.onCall(failFirst(-1, "claim"))
	var log eventLog
	g := newGuard(t, store, replay.Config{DangerouslyFailOpen: true, Observe: log.observe})
	body := ""
	w := serve(g, t.Context(), freshToken(t), `{"quantity":1}`, func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		body = b.String()
		created("unguarded")(w, r)
	})
	answer(t, "the client", w, 201, "unguarded", false)
	if body != `{"quantity":1}` {
		t.Errorf("the handler read %q", body)
	}
	if got, want := log.kinds(), "store_error failed_open"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestSealIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{Store: newMemstore(t)}
		store.onCall(failFirst(3, "seal"))
		var log eventLog
		g := newGuard(t, store, replay.Config{Observe: log.observe})
		tok := freshToken(t)
		answer(t, "the client", serve(g, t.Context(), tok, "{}", created("order 1")), 201, "order 1", false)
		answer(t, "the duplicate", serve(g, t.Context(), tok, "{}", created("no")), 201, "order 1", true)
		if got, want := log.kinds(), "claimed store_error store_error store_error sealed replayed"; got != want {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

func TestSealLostIsReportedAndTheClientAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{Store: newMemstore(t)}
		store.onCall(failFirst(-1, "seal"))
		var log eventLog
		var out bytes.Buffer
		g := newGuard(t, store, replay.Config{
			Observe: log.observe, Logger: slog.New(slog.NewTextHandler(&out, nil)), SealTimeout: 2 * time.Second,
		})
		tok := freshToken(t)
		began := time.Now()
		answer(t, "the client", serve(g, t.Context(), tok, "{}", created("order 1")), 201, "order 1", false)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("tried for %v, want at most 2s", took)
		}
		if !strings.HasSuffix(log.kinds(), "seal_lost") {
			t.Errorf("events %q, want seal_lost at the end", log.kinds())
		}
		if !strings.Contains(out.String(), "level=ERROR") || !strings.Contains(out.String(), "could not be stored") {
			t.Errorf("the log does not tell of the lost seal:\n%s", &out)
		}
		if strings.Contains(out.String(), tok) {
			t.Error("the token is in the log")
		}
	})
}

func TestReleaseThatFailsLeavesItToTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{Store: newMemstore(t)}
		store.onCall(failFirst(1, "release"))
		g := newGuard(t, store, replay.Config{Lease: time.Second})
		tok := freshToken(t)
		refused := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(422) }
		answer(t, "the client", serve(g, t.Context(), tok, "{}", refused), 422, "", false)
		began := time.Now()
		answer(t, "the retry", serve(g, t.Context(), tok, "{}", created("order 1")), 201, "order 1", false)
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("the retry took %v, want the lease of 1s", took)
		}
	})
}

func TestHangingStoreIsGivenUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, hangingStore{}, replay.Config{})
		began := time.Now()
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() {
				w := serve(g, t.Context(), freshToken(t), "{}", created("no"))
				problemCode(t, "a client", w, 503, "store-unavailable")
			})
		}
		wg.Wait()
		if took := time.Since(began); took != replay.DefaultStoreTimeout {
			t.Errorf("answered after %v, want %v", took, replay.DefaultStoreTimeout)
		}
	})
}

type hangingStore struct{}

func (hangingStore) Claim(ctx context.Context, _ replay.Claim) (replay.Record, replay.Hold, error) {
	<-ctx.Done()
	return replay.Record{}, nil, ctx.Err()
}

func (hangingStore) Look(ctx context.Context, _ string) (replay.Record, error) {
	<-ctx.Done()
	return replay.Record{}, ctx.Err()
}

// A lendingStore lends the handler a list of effects, which Seal commits.
type lendingStore struct {
	replay.Store
	mu      sync.Mutex
	undo    int      // guarded by mu: so many seals fail as undone
	unknown bool     // guarded by mu: the next seal fails without saying how
	lost    int      // guarded by mu: so many holds have lost a conflict when they are released
	effects []string // guarded by mu
}

type lentHold struct {
	replay.Hold
	s    *lendingStore
	mine []string
}

type lentKey struct{}

func (s *lendingStore) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	rec, hold, err := s.Store.Claim(ctx, c)
	if hold != nil {
		hold = &lentHold{Hold: hold, s: s}
	}
	return rec, hold, err
}

func (h *lentHold) Lend(ctx context.Context) context.Context {
	return context.WithValue(ctx, lentKey{}, h)
}

func (h *lentHold) Seal(ctx context.Context, response []byte, retention duration) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.s.undo > 0 {
		h.s.undo--
		return errors.Join(fmt.Errorf("commit: %w", replay.ErrUndone), h.Hold.Release(ctx))
	}
	if h.s.unknown {
		h.s.unknown = false
		return errAway
	}
	h.s.effects = append(h.s.effects, h.mine...)
	return h.Hold.Seal(ctx, response, retention)
}

func (h *lentHold) Release(ctx context.Context) error {
	err := h.Hold.Release(ctx)
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.s.lost > 0 {
		h.s.lost--
		return errors.Join(fmt.Errorf("statement: %w", replay.ErrUndone), err)
	}
	return err
}

func lentHandler(runs *int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*runs++
		h := r.Context().Value(lentKey{}).(*lentHold)
		h.mine = append(h.mine, "order")
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		w.Header().Add("X-Run", fmt.Sprint(*runs))
		created("order for "+b.String())(w, r)
	}
}

func TestUndoneTransactionIsNoSuccess(t *testing.T) {
	store := &lendingStore{Store: newMemstore(t), undo: 1}
	g := newGuard(t, store, replay.Config{})
	tok, runs := freshToken(t), 0
	w := serve(g, t.Context(), tok, "1", lentHandler(&runs))
	problemCode(t, "the client", w, 503, "store-unavailable")
	if w.Header().Get("X-Run") != "" {
		t.Error("a header of the undone response reached the client")
	}
	answer(t, "the retry", serve(g, t.Context(), tok, "1", lentHandler(&runs)), 201, "order for 1", false)
	if len(store.effects) != 1 {
		t.Errorf("%d effects, want 1", len(store.effects))
	}
}

func TestUndoneTransactionIsRunAgainWhereAllowed(t *testing.T) {
	store := &lendingStore{Store: newMemstore(t), undo: 2}
	g := newGuard(t, store, replay.Config{Reruns: 2})
	tok, runs := freshToken(t), 0
	w := serve(g, t.Context(), tok, "1", lentHandler(&runs))
	answer(t, "the client", w, 201, "order for 1", false)
	if got := w.Header().Values("X-Run"); len(got) != 1 || got[0] != "3" {
		t.Errorf("header of run %v, want that of the third alone", got)
	}
	if len(store.effects) != 1 || runs != 3 {
		t.Errorf("%d effects in %d runs, want 1 in 3", len(store.effects), runs)
	}
	answer(t, "a duplicate", serve(g, t.Context(), tok, "1", lentHandler(&runs)), 201, "order for 1", true)

	store.undo = 3
	problemCode(t, "one that conflicts too often", serve(g, t.Context(), freshToken(t), "1", lentHandler(&runs)), 503, "store-unavailable")
}

// What a statement says of a conflict, the handler answers by itself.
func TestAHandlerThatHasLostAConflictIsRunAgainWhereAllowed(t *testing.T) {
	for _, tt := range []struct {
		name         string
		reruns, lost int
		status, runs int
	}{
		{"not allowed", 0, 1, 500, 1},
		{"often enough", 2, 2, 201, 3},
		{"not often enough", 2, 3, 500, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := &lendingStore{Store: newMemstore(t), lost: tt.lost}
			var failed []error
			g := newGuard(t, store, replay.Config{Reruns: tt.reruns, Observe: func(_ context.Context, e replay.Event) {
				if e.Kind == replay.StoreError {
					failed = append(failed, e.Err)
				}
			}})
			tok, runs := freshToken(t), 0
			handler := func(w http.ResponseWriter, r *http.Request) {
				if runs < tt.lost {
					runs++
					w.Header().Add("X-Run", fmt.Sprint(runs))
					http.Error(w, "could not serialize access", 500)
					return
				}
				lentHandler(&runs)(w, r)
			}
			w := serve(g, t.Context(), tok, "1", handler)
			if got := w.Header().Values("X-Run"); w.Code != tt.status || len(got) != 1 || got[0] != fmt.Sprint(tt.runs) {
				t.Errorf("the client gets %d of runs %v, want %d of run %d alone", w.Code, got, tt.status, tt.runs)
			}
			if len(failed) != 0 {
				t.Errorf("a conflict counts as a failure of the store: %v", failed)
			}
			store.lost = 0
			runs = tt.lost
			w = serve(g, t.Context(), tok, "1", handler)
			if w.Code != 201 || len(store.effects) != 1 {
				t.Errorf("the next with the token gets %d, and there are %d effects; want 201 and 1", w.Code, len(store.effects))
			}
		})
	}
}

func TestOnceRunsWorkAgainThatHasLostAConflict(t *testing.T) {
	conflict := errors.New("could not serialize access")
	for lost, want := range map[int]error{1: nil, 2: conflict} {
		store := &lendingStore{Store: newMemstore(t), lost: lost}
		once, err := replay.NewOnce(store, replay.OnceConfig{Name: "transfer", Reruns: 1})
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		value, _, err := once.Do(t.Context(), "k", func(context.Context) ([]byte, error) {
			if runs++; runs <= lost {
				return nil, conflict
			}
			return []byte("done"), nil
		})
		if runs != 2 || !errors.Is(err, want) || (string(value) == "done") != (want == nil) {
			t.Errorf("%d conflicts: %q, %v after %d runs; want %v after 2", lost, value, err, runs, want)
		}
	}
}

func TestCommitOfUnknownFateIsNoSuccess(t *testing.T) {
	store := &lendingStore{Store: newMemstore(t), unknown: true}
	g := newGuard(t, store, replay.Config{Reruns: 5})
	runs := 0
	problemCode(t, "the client", serve(g, t.Context(), freshToken(t), "1", lentHandler(&runs)), 503, "store-unavailable")
	if runs != 1 {
		t.Errorf("%d runs, want 1: what may have happened must not be run again", runs)
	}
}

func TestAFormIsReadAnewByTheNextRun(t *testing.T) {
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	_ = m.WriteField("item", "tea")
	file, _ := m.CreateFormFile("photo", "tea.png")
	_, _ = file.Write([]byte("pixels"))
	_ = m.Close()
	for name, c := range map[string]struct{ kind, body string }{
		"multipart":  {m.FormDataContentType(), form.String()},
		"urlencoded": {urlencoded, "item=tea"},
	} {
		store := &lendingStore{Store: newMemstore(t), undo: 1}
		g := newGuard(t, store, replay.Config{Reruns: 1})
		w := sendTo(g, "POST", "/", c.kind, freshToken(t), strings.NewReader(c.body), func(w http.ResponseWriter, r *http.Request) {
			h := r.Context().Value(lentKey{}).(*lentHold)
			h.mine = append(h.mine, r.FormValue("item"))
			if f, _, err := r.FormFile("photo"); err == nil {
				b, _ := io.ReadAll(f)
				h.mine = append(h.mine, string(b))
			}
		})
		want := "tea pixels"
		if name == "urlencoded" {
			want = "tea"
		}
		if got := strings.Join(store.effects, " "); w.Code != 200 || got != want {
			t.Errorf("%s: %d, the second run committed %q, want %q", name, w.Code, got, want)
		}
	}
}
