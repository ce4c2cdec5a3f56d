package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"

	submitecho "github.com/submitonce/submitonce/middleware/echo"
	submitgin "github.com/submitonce/submitonce/middleware/gin"
	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

var (
	in  = `{"item":"book","quantity":1,"note":"` + strings.Repeat("n", 162) + `"}` // 200 bytes
	out = bytes.Repeat([]byte("o"), 300)
)

// respond is what every handler answers: 201, three headers and 300 bytes.
func respond(h http.Header, status func(int), write func([]byte) (int, error)) {
	h.Set("Content-Type", "application/json")
	h.Set("Location", "/orders/1")
	h.Set("Etag", `"1"`)
	status(http.StatusCreated)
	_, _ = write(out)
}

func order(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	respond(w.Header(), w.WriteHeader, w.Write)
}

// A sink is a response writer that costs nothing, so that what is measured is
// the library.
type sink struct {
	h      http.Header
	status int
}

func (w *sink) Header() http.Header         { return w.h }
func (w *sink) WriteHeader(s int)           { w.status = s }
func (w *sink) Write(p []byte) (int, error) { return len(p), nil }

func newTokens(secret []byte) (*token.Issuer, error) {
	ring, err := token.NewKeyring(secret)
	if err != nil {
		return nil, err
	}
	return token.New(ring, token.Config{})
}

func newSecret() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	return secret
}

// newGuard has everything on: the token is verified, the body fingerprinted, the
// claim has a lease.
func newGuard(store replay.Store) (*replay.Guard, *token.Issuer, error) {
	tokens, err := newTokens(newSecret())
	if err != nil {
		return nil, nil, err
	}
	g, err := guardWith(store, tokens)
	return g, tokens, err
}

func guardWith(store replay.Store, tokens *token.Issuer) (*replay.Guard, error) {
	return replay.New(store, replay.Config{
		Tokens: tokens, Logger: slog.New(slog.DiscardHandler), StoreTimeout: 10 * time.Second,
	})
}

func newMemstore() (*memstore.Store, error) {
	return memstore.New(memstore.Config{MaxEntries: 1 << 22, MaxBytes: 4 << 30})
}

// A framework builds the same route with and without a guard.
type framework struct {
	name string
	app  func(g *replay.Guard) http.Handler
}

var frameworks = []framework{
	{"net/http", func(g *replay.Guard) http.Handler {
		if g == nil {
			return http.HandlerFunc(order)
		}
		return nethttp.Middleware(g)(http.HandlerFunc(order))
	}},
	{"Gin", func(g *replay.Guard) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		e := gin.New()
		handlers := []gin.HandlerFunc{func(c *gin.Context) {
			_, _ = io.Copy(io.Discard, c.Request.Body)
			respond(c.Writer.Header(), c.Writer.WriteHeader, c.Writer.Write)
		}}
		if g != nil {
			handlers = append([]gin.HandlerFunc{submitgin.Middleware(g)}, handlers...)
		}
		e.POST("/orders", handlers...)
		return e
	}},
	{"Echo", func(g *replay.Guard) http.Handler {
		e := echo.New()
		var use []echo.MiddlewareFunc
		if g != nil {
			use = append(use, submitecho.Middleware(g))
		}
		e.POST("/orders", func(c echo.Context) error {
			_, _ = io.Copy(io.Discard, c.Request().Body)
			respond(c.Response().Header(), c.Response().WriteHeader, c.Response().Write)
			return nil
		}, use...)
		return e
	}},
}

// request makes one that can be sent again and again, by one goroutine.
func request(tok string) (r *http.Request, again func(tok string)) {
	body := strings.NewReader(in)
	src := io.NopCloser(body)
	r, _ = http.NewRequest(http.MethodPost, "/orders", src)
	r.ContentLength = int64(len(in))
	r.RequestURI = "/orders"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Submit-Token", tok)
	slot := r.Header["X-Submit-Token"]
	return r, func(tok string) {
		slot[0] = tok
		body.Reset(in)
		r.Body = src
	}
}

// submitting returns an op that submits to app with toks in turn. A replay has to
// be one, and a first submit must not be.
func submitting(app http.Handler, toks []string, replayed bool) op {
	r, again := request("")
	w := &sink{h: http.Header{}}
	return func(i int) error {
		again(toks[i%len(toks)])
		clear(w.h)
		app.ServeHTTP(w, r)
		if got := w.h["Idempotent-Replayed"] != nil; w.status != http.StatusCreated || got != replayed {
			return fmt.Errorf("status %d, replayed %v, want 201, %v", w.status, got, replayed)
		}
		return nil
	}
}

// guarded opens f's app behind a guard over store. Fresh says that each submit
// has a token of its own; else each worker has one, which it has submitted before.
func guarded(f framework, store replay.Store, fresh bool, ops int) (worker func() (op, error), err error) {
	g, tokens, err := newGuard(store)
	if err != nil {
		return nil, err
	}
	app := f.app(g)
	if !fresh {
		return func() (op, error) {
			tok := []string{tokens.Issue("", "").Value}
			return submitting(app, tok, true), submitting(app, tok, false)(0)
		}, nil
	}
	toks := make([]string, ops)
	for i := range toks {
		toks[i] = tokens.Issue("", "").Value
	}
	return func() (op, error) { return submitting(app, toks, false), nil }, nil
}

// bare is the handler without anything around it.
func bare(f framework) Contender {
	return Contender{Name: f.name + ", bare handler", Open: func(context.Context, int) (opened, error) {
		app := f.app(nil)
		return opened{func() (op, error) { return submitting(app, []string{"x"}, false), nil }, func() {}}, nil
	}}
}

// ours is the handler behind a guard over a memory store.
func ours(f framework, fresh bool, goal Goal) Contender {
	return Contender{
		Name: f.name + ", submitonce", Floor: f.name + ", bare handler", Goal: goal,
		Open: func(_ context.Context, ops int) (opened, error) {
			store, err := newMemstore()
			if err != nil {
				return opened{}, err
			}
			worker, err := guarded(f, store, fresh, ops)
			return opened{worker, func() { _ = store.Close() }}, err
		},
	}
}
