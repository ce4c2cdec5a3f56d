package main

import (
	"net/http"

	"github.com/submitonce/submitonce/token"
)

// handler returns the whole of the shop: the application in its framework, and
// around it what makes trouble and shows what comes of it.
func (s *shop) handler() (http.Handler, error) {
	var app http.Handler
	switch s.options.framework {
	case "gin":
		app = s.gin()
	case "echo":
		app = s.echo()
	default:
		app = s.nethttp()
	}
	assets, err := assets()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", app)
	mux.Handle("GET /submitonce.js", token.BrowserScript())
	mux.Handle("GET /assets/", assets)
	mux.HandleFunc("GET /demo/live", s.journal.live)
	return secure(s.journal.middleware(new(cutter).middleware(mux))), nil
}

// secure says that the pages need nothing but what this server serves. It stands
// outside the guard, as headers that all answers have should.
func secure(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; " +
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
