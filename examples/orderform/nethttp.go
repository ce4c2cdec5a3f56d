package main

import (
	"net/http"

	"github.com/submitonce/submitonce/middleware/nethttp"
)

func (s *shop) nethttp() http.Handler {
	once := nethttp.Middleware(s.guard)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.Handle("GET /submit-token", s.tokens.Handler())
	mux.Handle("GET /submit-token/status", s.guard.Status())
	mux.Handle("POST /orders", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		send(w, s.create(w, r))
	})))
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		send(w, s.list(r))
	})
	mux.HandleFunc("GET /orders/{no}", func(w http.ResponseWriter, r *http.Request) {
		send(w, s.show(r, r.PathValue("no")))
	})
	return mux
}

func send(w http.ResponseWriter, p reply) {
	if p.location != "" {
		w.Header().Set("Location", p.location)
	}
	if p.media != "" {
		w.Header().Set("Content-Type", p.media)
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body) // a client that is gone has nobody to tell
}

// page answers GET /.
func (s *shop) page(w http.ResponseWriter, r *http.Request) {
	r, cookie := withSession(r)
	if cookie != nil {
		http.SetCookie(w, cookie)
	}
	field := s.tokens.Field(w, r, formName) // says no-store, too
	send(w, s.indexPage(r, field))
}
