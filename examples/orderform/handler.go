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
	return s.journal.middleware(new(cutter).middleware(mux)), nil
}
