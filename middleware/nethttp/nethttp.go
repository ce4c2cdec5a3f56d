// Package nethttp mounts a [replay.Guard] as middleware for net/http and the
// routers that are built on it, such as chi.
//
//	tokens, err := token.New(ring, token.Config{Subject: sessionID})
//	guard, err := replay.New(store, replay.Config{Tokens: tokens})
//	once := nethttp.Middleware(guard)
//
//	mux := http.NewServeMux()
//	mux.Handle("GET /submit-token", tokens.Handler())
//	mux.Handle("POST /orders", once(createOrder))
//
// Put what decides who the client is, such as authentication, and what changes
// each answer, such as compression and CORS, around it; what the handler's
// answer needs, inside.
package nethttp

import (
	"net/http"

	"github.com/submitonce/submitonce/replay"
)

// Middleware returns middleware that runs a handler once per key.
func Middleware(g *replay.Guard) func(next http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.Serve(w, r, next) })
	}
}
