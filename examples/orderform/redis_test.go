package main

import (
	"net/http"
	"sync"
	"testing"

	"github.com/submitonce/submitonce/internal/testserver"
)

func TestShopsOnOneRedisAnswerAlike(t *testing.T) {
	var shops []*client
	for _, framework := range frameworks {
		o := options{framework: framework, store: "redis", redisURL: testserver.Redis(t)}
		shops = append(shops, newClient(t, newTestServer(t, o)))
	}
	token := shops[0].token("form=order")
	answers := make([]answer, 30)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			answers[i] = shops[i%len(shops)].order(token, asJSON, `{"item":"vase","quantity":2}`, "X-Demo-Delay", "200ms")
		})
	}
	wg.Wait()
	orders := 0
	for _, s := range shops {
		orders += len(s.orders())
	}
	if orders != 1 {
		t.Errorf("%d orders in all shops, want 1", orders)
	}
	for _, a := range answers {
		shops[0].want(a, http.StatusCreated, answers[0].body)
	}
}
