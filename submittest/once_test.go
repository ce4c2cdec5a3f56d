package submittest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/submittest"
	"github.com/submitonce/submitonce/token"
)

// A shop takes orders.
type shop struct {
	tokens  *token.Issuer
	guard   *replay.Guard
	ordered atomic.Int64
}

func newShop(t testing.TB) *shop {
	t.Helper()
	ring, err := token.NewKeyring([]byte("a secret of this test, and of nobody else"))
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := token.New(ring, token.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	guard, err := replay.New(store, replay.Config{Tokens: tokens, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return &shop{tokens: tokens, guard: guard}
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	n := s.ordered.Add(1)
	w.Header().Set("Location", fmt.Sprint("/orders/", n))
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"order_no": n, "order": string(b)})
}

func (s *shop) guarded() http.Handler { return nethttp.Middleware(s.guard)(s) }

func (s *shop) count() int { return int(s.ordered.Load()) }

// requests returns an Attack.Request with one token for all.
func (s *shop) requests() func() *http.Request {
	tok := s.tokens.Issue("", "").Value
	return func() *http.Request {
		r := httptest.NewRequest("POST", "/orders", strings.NewReader("tea"))
		r.Header.Set(token.HeaderName, tok)
		return r
	}
}

// A recordingTB keeps what a helper reports.
type recordingTB struct {
	testing.TB
	report string
}

func (r *recordingTB) Helper() {}

func (r *recordingTB) Errorf(format string, args ...any) { r.report += fmt.Sprintf(format, args...) }

type fatal struct{ text string }

func (r *recordingTB) Fatalf(format string, args ...any) { panic(fatal{fmt.Sprintf(format, args...)}) }

func TestOncePassesBehindTheGuard(t *testing.T) {
	s := newShop(t)
	s.ordered.Store(3) // what is there already does not count
	first := submittest.Once(t, s.guarded(), submittest.Attack{Request: s.requests(), Effects: s.count})
	body, err := io.ReadAll(first.Body)
	if err != nil || first.StatusCode != 201 || string(body) != `{"order":"tea","order_no":4}`+"\n" {
		t.Errorf("first answer is %d %q (%v), want the order's 201", first.StatusCode, body, err)
	}
	if got := s.count(); got != 4 {
		t.Errorf("%d orders, want 4", got)
	}
}

func TestOnceSendsAsOftenAsItIsTold(t *testing.T) {
	s := newShop(t)
	var sent atomic.Int64
	guarded := s.guarded()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", fmt.Sprint(sent.Add(1)))
		guarded.ServeHTTP(w, r)
	})
	submittest.Once(t, h, submittest.Attack{
		Request: s.requests(), Effects: s.count, Times: 7, Ignore: []string{"x-request-id"},
	})
	if got := sent.Load(); got != 14 {
		t.Errorf("%d requests were sent, want 14", got)
	}
}

func TestOnceFails(t *testing.T) {
	tests := []struct {
		name string
		make func(s *shop, a *submittest.Attack) http.Handler
		want []string // in the report
	}{
		{"without a guard", func(s *shop, _ *submittest.Attack) http.Handler { return s }, []string{
			"POST /orders, sent 5 times at once and 5 times one after the other",
			"the effect happened 10 times, want once", "the answers are of 10 kinds, want one",
			"other in: body, header", "201 Created", "Location: /orders/", "and 5 more",
			"Does the handler stand behind the guard?",
		}},
		{"when each request has a new token", func(s *shop, a *submittest.Attack) http.Handler {
			a.Request = func() *http.Request { return s.requests()() }
			return s.guarded()
		}, []string{"the effect happened 10 times", "10 different tokens", "issue it once, outside"}},
		{"without a token", func(s *shop, a *submittest.Attack) http.Handler {
			a.Request = func() *http.Request { return httptest.NewRequest("POST", "/orders", nil) }
			return s.guarded()
		}, []string{"the effect happened 0 times", "400 Bad Request", "let Attack.Request set one"}},
		{"when contents differ", func(s *shop, a *submittest.Attack) http.Handler {
			same := s.requests()
			var n atomic.Int64
			a.Request = func() *http.Request {
				r := same()
				r.Body = io.NopCloser(strings.NewReader(fmt.Sprint(n.Add(1))))
				return r
			}
			return s.guarded()
		}, []string{"the effect happened once, want once", "422 Unprocessable Entity", "other in: status, body, header",
			"different contents under one token"}},
		{"when the handler refuses", func(s *shop, _ *submittest.Attack) http.Handler {
			return nethttp.Middleware(s.guard)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "sold out", http.StatusConflict)
			}))
		}, []string{"the effect happened 0 times", "409 Conflict", "sold out", "an error is no outcome"}},
		{"when a header is fresh each time", func(s *shop, _ *submittest.Attack) http.Handler {
			guarded := s.guarded()
			var n atomic.Int64
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Request-Id", fmt.Sprint(n.Add(1)))
				guarded.ServeHTTP(w, r)
			})
		}, []string{"the effect happened once", "other in: header", "X-Request-Id: ", "named in Attack.Ignore"}},
		{"when the second answer says that it is a duplicate", func(s *shop, _ *submittest.Attack) http.Handler {
			var once sync.Once
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				first := false
				once.Do(func() { first = true })
				if first {
					s.ServeHTTP(w, r)
				} else {
					http.Error(w, "duplicate submission", http.StatusConflict)
				}
			})
		}, []string{"the effect happened once", "the answers are of 2 kinds", "duplicate submission", "9 answers, 0 of them replays"}},
		{"when the handler panics", func(s *shop, _ *submittest.Attack) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("out of tea") })
		}, []string{"the effect happened 0 times", "panic: out of tea"}},
		{"when trailers differ", func(s *shop, _ *submittest.Attack) http.Handler {
			var n atomic.Int64
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if n.Add(1) == 1 {
					s.ordered.Add(1)
				}
				w.Header().Set("Trailer", "X-Sum")
				_, _ = io.WriteString(w, "ordered")
				w.Header().Set("X-Sum", fmt.Sprint(n.Load()))
			})
		}, []string{"the effect happened once", "X-Sum: "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t)
			a := submittest.Attack{Request: s.requests(), Effects: s.count, Times: 5}
			h := tt.make(s, &a)
			rec := &recordingTB{TB: t}
			submittest.Once(rec, h, a)
			for _, want := range tt.want {
				if !strings.Contains(rec.report, want) {
					t.Errorf("report lacks %q:\n%s", want, rec.report)
				}
			}
		})
	}
}

func TestOnceHasToKnowWhatToSendAndCount(t *testing.T) {
	s := newShop(t)
	for _, a := range []submittest.Attack{{Request: s.requests()}, {Effects: s.count}} {
		func() {
			defer func() {
				if f, ok := recover().(fatal); !ok || !strings.Contains(f.text, "have to be set") {
					t.Errorf("Once(%+v) did not stop the test for what is missing", a)
				}
			}()
			submittest.Once(&recordingTB{TB: t}, s, a)
		}()
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d orders, want none", n)
	}
}
