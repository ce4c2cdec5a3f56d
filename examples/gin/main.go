// Command gin is the shortest start with Gin: a page with a form, and a handler
// that runs once however often the form is sent.
//
// Try: open http://127.0.0.1:8082 and click Send as fast as you can; one number.
// Try: refresh the result page and send the form again; still the same number.
// Try: go back to the page and load it anew; a new page may send once more.
package main

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	submitgin "github.com/submitonce/submitonce/middleware/gin"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

func main() {
	log.Fatal(newEngine().Run("127.0.0.1:8082"))
}

func newEngine() *gin.Engine {
	secret := make([]byte, 32) // in production: the same for all processes, from your secret store
	_, _ = rand.Read(secret)
	ring := must(token.NewKeyring(secret))
	tokens := must(token.New(ring, token.Config{})) // with logins, set Subject
	store := must(memstore.New(memstore.Config{}))
	once := submitgin.Middleware(must(replay.New(store, replay.Config{Tokens: tokens})))

	router := gin.Default()
	router.GET("/submit-token", gin.WrapH(tokens.Handler())) // for pages that submit with fetch
	router.GET("/submitonce.js", gin.WrapH(token.BrowserScript()))
	router.GET("/", func(c *gin.Context) {
		field := tokens.Field(c.Writer, c.Request, "")
		c.Data(http.StatusOK, "text/html", fmt.Appendf(nil, page, field))
	})
	var orders atomic.Int64
	router.POST("/orders", once, func(c *gin.Context) {
		c.JSON(http.StatusCreated, gin.H{"order": orders.Add(1), "item": c.PostForm("item")})
	})
	return router
}

const page = `<!doctype html><title>Order</title><script src="/submitonce.js"></script>
<form action="/orders" method="post" data-submit-once>%s <input name="item" value="A mug"> <button>Send</button></form>`

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
