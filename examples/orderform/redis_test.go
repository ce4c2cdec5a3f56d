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

func TestTieredShopGoesOnWithoutRedis(t *testing.T) {
	redis := testserver.StartRedis(t)
	o := options{framework: "nethttp", store: "tiered", redisURL: redis.URL, databaseURL: newDatabase(t)}
	c := newClient(t, newTestServer(t, o))
	token := c.token("form=order")
	first := c.order(token, asJSON, `{"item":"vase","quantity":2}`)
	c.want(first, http.StatusCreated)
	redis.Kill()
	for range 3 {
		again := c.order(token, asJSON, `{"item":"vase","quantity":2}`)
		c.want(again, http.StatusCreated, first.body)
		if !again.replayed() {
			t.Error("the duplicate was not answered with a replay")
		}
		c.want(c.order(c.token("form=order"), asJSON, `{"item":"mug","quantity":1}`), http.StatusCreated)
	}
	c.wantOrders(4)
}
