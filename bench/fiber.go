package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/valyala/fasthttp"
)

// overFiber is the peer that the module proxy serves: fiber's own middleware, on
// fasthttp. The guarded contender's floor is fiber's bare handler.
func overFiber(fresh bool) []Contender {
	const bare = "fiber, bare handler"
	open := func(guarded bool) func(context.Context, int) (opened, error) {
		return func(_ context.Context, ops int) (opened, error) {
			app := fiberApp(guarded, func() {})
			var toks []string
			if fresh {
				toks = make([]string, ops)
				for i := range toks {
					toks[i] = uuid()
				}
			}
			if guarded {
				if err := tryFiber(); err != nil {
					return opened{}, err
				}
			}
			handler := app.Handler()
			return opened{func() (op, error) {
				c := new(fasthttp.RequestCtx)
				if fresh {
					return func(i int) error { return fiberSubmit(handler, c, toks[i]) }, nil
				}
				tok := uuid()
				return func(int) error { return fiberSubmit(handler, c, tok) }, fiberSubmit(handler, c, tok)
			}, func() { _ = app.Shutdown() }}, nil
		}
	}
	return []Contender{
		{Name: bare, Open: open(false)},
		{Name: "fiber, middleware/idempotency", Floor: bare, Open: open(true)},
	}
}

// tryFiber makes sure that the middleware does its work, outside of the clock.
func tryFiber() error {
	var runs int
	handler := fiberApp(true, func() { runs++ }).Handler()
	one, other := uuid(), uuid()
	for _, key := range []string{one, other, one} {
		if err := fiberSubmit(handler, new(fasthttp.RequestCtx), key); err != nil {
			return err
		}
	}
	if runs != 2 {
		return fmt.Errorf("fiber ran the handler %d times for two keys", runs)
	}
	return nil
}

const fiberKey = "X-Idempotency-Key"

func fiberApp(guarded bool, ran func()) *fiber.App {
	app := fiber.New()
	if guarded {
		app.Use(idempotency.New(idempotency.Config{KeyHeader: fiberKey}))
	}
	app.Post("/orders", func(c fiber.Ctx) error {
		ran()
		_ = c.Body()
		c.Set("Content-Type", "application/json")
		c.Set("Location", "/orders/1")
		c.Set("Etag", `"1"`)
		return c.Status(http.StatusCreated).Send(out)
	})
	return app
}

func fiberSubmit(handler fasthttp.RequestHandler, c *fasthttp.RequestCtx, key string) error {
	c.Request.Reset()
	c.Response.Reset()
	c.Request.Header.SetMethod(http.MethodPost)
	c.Request.SetRequestURI("/orders")
	c.Request.Header.SetContentType("application/json")
	c.Request.Header.Set(fiberKey, key)
	c.Request.SetBodyString(in)
	handler(c)
	if s := c.Response.StatusCode(); s != http.StatusCreated {
		return fmt.Errorf("status %d", s)
	}
	return nil
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
