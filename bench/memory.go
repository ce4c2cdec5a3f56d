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
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/labstack/echo/v4"
	"github.com/valyala/fasthttp"

	submitecho "github.com/submitonce/submitonce/middleware/echo"
	submitgin "github.com/submitonce/submitonce/middleware/gin"
	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

var (
	in  = `{"item":"book","quantity":1,"note":"` + strings.Repeat("n", 161) + `"}` // 200 bytes
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

func newTokens() (*token.Issuer, error) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	ring, err := token.NewKeyring(secret)
	if err != nil {
		return nil, err
	}
	return token.New(ring, token.Config{})
}

func newGuard(store replay.Store) (*replay.Guard, *token.Issuer, error) {
	tokens, err := newTokens()
	if err != nil {
		return nil, nil, err
	}
	g, err := replay.New(store, replay.Config{
		Tokens: tokens, Logger: slog.New(slog.DiscardHandler), StoreTimeout: 10 * time.Second,
	})
	return g, tokens, err
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

// bare is the handler without anything around it.
func bare(f framework) Contender {
	return Contender{Name: f.name + ", bare handler", Open: func(context.Context, int) (func(int) error, func(), error) {
		app := f.app(nil)
		r, again := request("x")
		w := &sink{h: http.Header{}}
		return func(int) error {
			again("x")
			clear(w.h)
			app.ServeHTTP(w, r)
			return nil
		}, func() {}, nil
	}}
}

// ours is the handler behind a guard over a memory store. Fresh says that each
// submit has a token of its own; else all have one.
func ours(f framework, fresh bool) Contender {
	return Contender{Name: f.name + ", submitonce", Open: func(_ context.Context, ops int) (func(int) error, func(), error) {
		store, err := memstore.New(memstore.Config{MaxEntries: 1 << 22, MaxBytes: 4 << 30})
		if err != nil {
			return nil, nil, err
		}
		op, err := submitter(f, store, fresh, ops)
		return op, func() { _ = store.Close() }, err
	}}
}

// submitter returns what submits once through f over store, for one goroutine.
func submitter(f framework, store replay.Store, fresh bool, ops int) (func(int) error, error) {
	g, tokens, err := newGuard(store)
	if err != nil {
		return nil, err
	}
	issued := make([]string, 1)
	if fresh {
		issued = make([]string, ops)
	}
	for i := range issued {
		issued[i] = tokens.Issue("", "").Value
	}
	app := f.app(g)
	r, again := request("")
	w := &sink{h: http.Header{}}
	return func(i int) error {
		again(issued[i%len(issued)])
		clear(w.h)
		app.ServeHTTP(w, r)
		if w.status != http.StatusCreated {
			return fmt.Errorf("status %d", w.status)
		}
		return nil
	}, nil
}

// overFiber is fiber's own middleware, on fasthttp.
func overFiber(guarded, fresh bool) Contender {
	name := "fiber, bare handler"
	if guarded {
		name = "fiber, middleware/idempotency"
	}
	return Contender{Name: name, Open: func(_ context.Context, ops int) (func(int) error, func(), error) {
		app := fiber.New()
		if guarded {
			app.Use(idempotency.New(idempotency.Config{KeyHeader: "X-Idempotency-Key"}))
		}
		app.Post("/orders", func(c fiber.Ctx) error {
			_ = c.Body()
			c.Set("Content-Type", "application/json")
			c.Set("Location", "/orders/1")
			c.Set("Etag", `"1"`)
			return c.Status(http.StatusCreated).Send(out)
		})
		handler := app.Handler()
		keys := make([]string, 1)
		if fresh {
			keys = make([]string, ops)
		}
		for i := range keys {
			keys[i] = uuid()
		}
		c := new(fasthttp.RequestCtx)
		return func(i int) error {
			c.Request.Reset()
			c.Response.Reset()
			c.Request.Header.SetMethod(http.MethodPost)
			c.Request.SetRequestURI("/orders")
			c.Request.Header.SetContentType("application/json")
			c.Request.Header.Set("X-Idempotency-Key", keys[i%len(keys)])
			c.Request.SetBodyString(in)
			handler(c)
			if s := c.Response.StatusCode(); s != http.StatusCreated {
				return fmt.Errorf("status %d", s)
			}
			return nil
		}, func() { _ = app.Shutdown() }, nil
	}}
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func memoryWorkloads() []Workload {
	var ws []Workload
	for _, kind := range []struct {
		name  string
		fresh bool
	}{{"first submit", true}, {"replay", false}} {
		w := Workload{
			Name: "memory: " + kind.name, Slice: 100 * time.Millisecond, Peers: true,
			Note: "200 bytes of JSON in; 201, three headers and 300 bytes out; no network. Over its own bare handler.",
		}
		for _, f := range frameworks {
			w.Contenders = append(w.Contenders, bare(f), ours(f, kind.fresh))
		}
		w.Contenders = append(w.Contenders, overFiber(false, kind.fresh), overFiber(true, kind.fresh))
		ws = append(ws, w)
	}
	return append(ws, Workload{
		Name: "token", Slice: 50 * time.Millisecond, Note: "One token.",
		Contenders: []Contender{
			{"issue", func(context.Context, int) (func(int) error, func(), error) {
				tokens, err := newTokens()
				return func(int) error { tokens.Issue("checkout", "user-1"); return nil }, func() {}, err
			}},
			{"verify", func(context.Context, int) (func(int) error, func(), error) {
				tokens, err := newTokens()
				if err != nil {
					return nil, nil, err
				}
				tok := tokens.Issue("checkout", "user-1").Value
				return func(int) error { _, err := tokens.Verify(tok, "checkout", "user-1"); return err }, func() {}, nil
			}},
		},
	})
}
