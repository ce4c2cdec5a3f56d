// Command echo is the shortest start with Echo: a page with a form, and a handler
// that runs once however often the form is sent.
//
// Try: open http://127.0.0.1:8083 and click Send as fast as you can; one number.
// Try: refresh the result page and send the form again; still the same number.
// Try: go back to the page and load it anew; a new page may send once more.
package main

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	submitecho "github.com/submitonce/submitonce/middleware/echo"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

func main() {
	log.Fatal(newEcho().Start("127.0.0.1:8083"))
}

func newEcho() *echo.Echo {
	secret := make([]byte, 32) // in production: the same for all processes, from your secret store
	_, _ = rand.Read(secret)
	ring := must(token.NewKeyring(secret))
	tokens := must(token.New(ring, token.Config{})) // with logins, set Subject
	store := must(memstore.New(memstore.Config{}))
	once := submitecho.Middleware(must(replay.New(store, replay.Config{Tokens: tokens})))

	e := echo.New()
	e.GET("/submit-token", echo.WrapHandler(tokens.Handler())) // for pages that submit with fetch
	e.GET("/submitonce.js", echo.WrapHandler(token.BrowserScript()))
	e.GET("/", func(c echo.Context) error {
		field := tokens.Field(c.Response(), c.Request(), "")
		return c.HTML(http.StatusOK, fmt.Sprintf(page, field))
	})
	var orders atomic.Int64
	e.POST("/orders", func(c echo.Context) error {
		return c.JSON(http.StatusCreated, echo.Map{"order": orders.Add(1), "item": c.FormValue("item")})
	}, once)
	return e
}

const page = `<!doctype html><title>Order</title><script src="/submitonce.js"></script>
<form action="/orders" method="post" data-submit-once>%s <input name="item" value="A mug"> <button>Send</button></form>`

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
