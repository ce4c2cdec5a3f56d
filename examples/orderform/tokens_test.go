package main

import (
	"net/http"
	"strings"
	"testing"
)

func TestTokensOfTheShopsFormsAreGood(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		for _, query := range []string{"", "form=", "form=order", "form=checkout"} {
			c.want(c.order(c.token(query), asJSON, `{"item":"mug","quantity":1}`), http.StatusCreated)
		}
		c.want(c.order(c.token("form=newsletter"), asJSON, `{"item":"mug","quantity":1}`), http.StatusForbidden, "#invalid-token")
		c.wantOrders(4)
	})
}

func TestNoOrderWithoutAGoodToken(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		good := c.token("form=order")
		middle := "A"
		if good[20] == 'A' {
			middle = "B"
		}
		tests := []struct {
			name, token string
			status      int
			code        string
		}{
			{"none", "", 400, "#missing-key"},
			{"malformed", "?", 400, "#malformed-key"},
			{"forged", good[:20] + middle + good[21:], 403, "#invalid-token"},
			{"two", good + ", " + c.token("form=order"), 400, "#conflicting-keys"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				c.want(c.order(tt.token, asJSON, `{"item":"mug","quantity":1}`), tt.status, tt.code)
				page := c.order(tt.token, asJSON, `{"item":"mug","quantity":1}`, "Accept", acceptPage)
				c.want(page, tt.status, "To the shop")
			})
		}
		c.wantOrders(0)
	})
}

func TestTokenIsGoodForItsSessionOnly(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		alice, bob := c.browser(), c.browser()
		alice.get("/")
		bob.get("/")
		token := alice.token("form=order")
		for _, thief := range []*client{bob, c} {
			c.want(thief.order(token, asJSON, `{"item":"mug","quantity":1}`), http.StatusForbidden, "#invalid-token")
		}
		c.want(alice.order(token, asJSON, `{"item":"mug","quantity":1}`), http.StatusCreated)
		c.want(bob.order(token, asJSON, `{"item":"mug","quantity":1}`), http.StatusForbidden)
		c.wantOrders(1)
	})
}

func TestPageSetsASessionOnceAndTheTokenEndpointNever(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		b := c.browser()
		cookie := b.get("/").header.Get("Set-Cookie")
		for _, want := range []string{"shop_session=", "HttpOnly", "SameSite=Lax"} {
			if !strings.Contains(cookie, want) {
				t.Errorf("Set-Cookie %q does not have %s", cookie, want)
			}
		}
		for _, path := range []string{"/", "/submit-token"} {
			if got := b.get(path).header.Get("Set-Cookie"); got != "" {
				t.Errorf("GET %s sets %q, want nothing", path, got)
			}
		}
		if got := c.get("/submit-token").header.Get("Set-Cookie"); got != "" {
			t.Errorf("GET /submit-token sets %q, want nothing", got)
		}
	})
}

func TestOtherPayloadUnderAUsedTokenIsRefused(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		token := c.token("form=order")
		c.want(c.order(token, asJSON, `{"item":"mug","quantity":1}`), http.StatusCreated)
		c.want(c.order(token, asJSON, `{"item":"mug","quantity":2}`), http.StatusUnprocessableEntity, "#payload-mismatch")
		c.want(c.order(token, asJSON, `{"item":"mug","quantity":2}`, "Accept", acceptPage),
			http.StatusUnprocessableEntity, "<h1>Another content was sent before</h1>", "To the shop")
		c.wantOrders(1)
	})
}

func TestOneCartIsOrderedOnceFromTwoTabs(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		b := c.browser()
		b.get("/")
		one, two := b.token("form=checkout&instance=cart-42"), b.token("form=checkout&instance=cart-42")
		if one != two {
			t.Error("two tabs of one cart have different tokens")
		}
		first := b.order(one, asJSON, `{"item":"mug","quantity":1}`)
		c.want(first, http.StatusCreated)
		c.want(b.order(two, asJSON, `{"item":"mug","quantity":1}`), http.StatusCreated, first.body)
		c.want(b.order(b.token("form=checkout&instance=cart-43"), asJSON, `{"item":"mug","quantity":1}`), http.StatusCreated)
		c.wantOrders(2)
	})
}
