package submittest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/submittest"
	"github.com/submitonce/submitonce/token"
)

// printing stands for the *testing.T that a test gets.
type printing struct{ testing.TB }

func (printing) Helper() {}

func (printing) Errorf(format string, args ...any) { fmt.Printf(format, args...) }

func newApp() (app http.Handler, tokens *token.Issuer, orders func() int) {
	ring, err := token.NewKeyring([]byte("at least thirty-two secret bytes"))
	if err != nil {
		panic(err)
	}
	tokens, err = token.New(ring, token.Config{})
	if err != nil {
		panic(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := replay.New(store, replay.Config{Tokens: tokens})
	if err != nil {
		panic(err)
	}
	var n atomic.Int64
	app = nethttp.Middleware(guard)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, "Thank you!")
	}))
	return app, tokens, func() int { return int(n.Load()) }
}

func ExampleOnce() {
	t := printing{} // in a test, its *testing.T

	app, tokens, orders := newApp()
	tok := tokens.Issue("", "").Value // once, as a page has one
	first := submittest.Once(t, app, submittest.Attack{
		Request: func() *http.Request {
			r := httptest.NewRequest("POST", "/orders", strings.NewReader(`{"item":"tea"}`))
			r.Header.Set(token.HeaderName, tok)
			return r
		},
		Effects: orders,
	})
	fmt.Println(first.Status, "and", orders(), "order after 40 submits")
	// Output: 201 Created and 1 order after 40 submits
}

// The commonest mistake in this field: a new token for each click.
func ExampleOnce_freshTokenPerClick_incorrect() {
	t := printing{}

	app, tokens, orders := newApp()
	submittest.Once(t, app, submittest.Attack{
		Request: func() *http.Request {
			r := httptest.NewRequest("POST", "/orders", strings.NewReader(`{"item":"tea"}`))
			r.Header.Set(token.HeaderName, tokens.Issue("", "").Value)
			return r
		},
		Effects: orders,
		Times:   2,
	})
	// Output:
	// submittest: POST /orders, sent 2 times at once and 2 times one after the other
	//   the effect happened 4 times, want once
	//
	//   4 answers, 0 of them replays; the first is request 1, at once
	//     201 Created
	//     Thank you!
	//
	//   The requests carry 4 different tokens. A page has one, however often it is submitted: issue it once, outside of Attack.Request.
}
