package compat

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/gorilla/mux"
)

func TestGorillaRoutesAndVarsReachTheHandler(t *testing.T) {
	order := func(s *shop) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			n := s.run()
			template, err := mux.CurrentRoute(r).GetPathTemplate()
			if err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "order %d of cart %s: %s by %s", n, mux.Vars(r)["cart"], r.PostFormValue("item"), template)
		}
	}
	mounts := map[string]func(r *mux.Router, s *shop){
		"router.Use": func(r *mux.Router, s *shop) {
			r.Use(s.once)
			r.HandleFunc("/carts/{cart:[0-9]+}/orders", order(s)).Methods("POST")
		},
		"Subrouter": func(r *mux.Router, s *shop) {
			carts := r.PathPrefix("/carts/{cart:[0-9]+}").Subrouter()
			carts.Use(s.once)
			carts.HandleFunc("/orders", order(s)).Methods("POST")
		},
		"on the route": func(r *mux.Router, s *shop) {
			r.Handle("/carts/{cart:[0-9]+}/orders", s.once(order(s))).Methods("POST")
		},
	}
	for name, mount := range mounts {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			router := mux.NewRouter()
			mount(router, s)
			s.serve(router)
			s.runsOnce(request{path: "/carts/7/orders", body: "item=tea"}, 201,
				"order %d of cart 7: tea by /carts/{cart:[0-9]+}/orders")
		})
	}
	t.Run("around the router", func(t *testing.T) {
		s := newShop(t)
		router := mux.NewRouter()
		router.HandleFunc("/carts/{cart}/orders", order(s)).Methods("POST")
		s.serve(s.once(router))
		s.runsOnce(request{path: "/carts/7/orders", body: "item=tea"}, 201,
			"order %d of cart 7: tea by /carts/{cart}/orders")
	})
}
