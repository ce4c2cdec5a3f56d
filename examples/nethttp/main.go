// Command nethttp is the shortest start with net/http: a page with a form, and a
// handler that runs once however often the form is sent.
//
// Try: open http://127.0.0.1:8081 and click Send as fast as you can; one number.
// Try: refresh the result page and send the form again; still the same number.
// Try: go back to the page and load it anew; a new page may send once more.
package main

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"sync/atomic"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

func main() {
	log.Fatal(http.ListenAndServe("127.0.0.1:8081", newHandler()))
}

func newHandler() http.Handler {
	secret := make([]byte, 32) // in production: the same for all processes, from your secret store
	_, _ = rand.Read(secret)
	ring := must(token.NewKeyring(secret))
	tokens := must(token.New(ring, token.Config{})) // with logins, set Subject
	store := must(memstore.New(memstore.Config{}))
	once := nethttp.Middleware(must(replay.New(store, replay.Config{Tokens: tokens})))

	mux := http.NewServeMux()
	mux.Handle("GET /submit-token", tokens.Handler()) // for pages that submit with fetch
	mux.Handle("GET /submitonce.js", token.BrowserScript())
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		field := tokens.Field(w, r, "")
		fmt.Fprintf(w, page, field)
	})
	var orders atomic.Int64
	mux.Handle("POST /orders", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%s is order %d\n", r.FormValue("item"), orders.Add(1))
	})))
	return mux
}

const page = `<!doctype html><title>Order</title><script src="/submitonce.js"></script>
<form action="/orders" method="post" data-submit-once>%s <input name="item" value="A mug"> <button>Send</button></form>`

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
