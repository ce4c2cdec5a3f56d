package main

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

func TestFiftyParallelSubmitsMakeOneOrder(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		token := c.token("form=order")
		answers := make([]answer, 50)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = c.order(token, asJSON, `{"item":"vase","quantity":2}`, "X-Demo-Delay", "50ms") })
		}
		wg.Wait()
		first := 0
		for _, a := range answers {
			c.want(a, http.StatusCreated)
			if a.body != answers[0].body || a.header.Get("Location") != answers[0].header.Get("Location") {
				t.Errorf("answers differ: %s and %s", a.body, answers[0].body)
			}
			if !a.replayed() {
				first++
			}
		}
		if first != 1 {
			t.Errorf("%d answers are not replays, want 1", first)
		}
		c.wantOrders(1)
	})
}

func TestLateDuplicateGetsTheFirstAnswer(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		token := c.token("")
		first := c.order(token, asJSON, `{"item":"mug","quantity":1}`)
		c.want(first, http.StatusCreated)
		again := c.order(token, asJSON, `{"item":"mug","quantity":1}`)
		c.want(again, http.StatusCreated, first.body)
		if first.replayed() || !again.replayed() {
			t.Errorf("replayed: %v, then %v; want false, then true", first.replayed(), again.replayed())
		}
		c.wantOrders(1)
	})
}

func TestOrderComesInEveryForm(t *testing.T) {
	var multi bytes.Buffer
	parts := multipart.NewWriter(&multi)
	for _, f := range [][2]string{{"item", "bowl"}, {"quantity", "3"}} {
		if err := parts.WriteField(f[0], f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := parts.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, media, body string }{
		{"JSON", asJSON, `{"item":"bowl","quantity":3}`},
		{"JSON with charset", "application/json; charset=utf-8", `{"item":"bowl","quantity":3}`},
		{"JSON with the number as text", asJSON, `{"item":"bowl","quantity":"3"}`},
		{"urlencoded", asForm, "item=bowl&quantity=3"},
		{"multipart", parts.FormDataContentType(), multi.String()},
	}
	everyFramework(t, func(t *testing.T, c *client) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				a := c.order(c.token("form=order"), tt.media, tt.body)
				c.want(a, http.StatusCreated)
				o := orderIn(t, a)
				want := fmt.Sprintf(`{"order_no":%q,"item":"bowl","quantity":3}`, o.No)
				if strings.TrimSpace(a.body) != want {
					t.Errorf("body %s, want %s", a.body, want)
				}
				if got := a.header.Get("Location"); got != "/orders/"+o.No {
					t.Errorf("Location %q, want %q", got, "/orders/"+o.No)
				}
				c.want(c.get("/orders/"+o.No, "Accept", asJSON), http.StatusOK, want)
				c.want(c.get("/orders/"+o.No, "Accept", acceptPage), http.StatusOK, "<h1>"+o.No+"</h1>", "Noodle bowl")
			})
		}
		c.wantOrders(len(tests))
	})
}

func TestTokenInTheFormIsAsGoodAsInTheHeader(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		token := c.token("form=order")
		body := url.Values{"submit_token": {token}, "item": {"mug"}, "quantity": {"1"}}.Encode()
		first := c.do(http.MethodPost, "/orders", body, "Content-Type", asForm)
		c.want(first, http.StatusCreated)
		again := c.order(token, asForm, body)
		c.want(again, http.StatusCreated, first.body)
		c.wantOrders(1)
	})
}

func TestFormPostIsRedirectedToItsOrder(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		b := c.browser()
		page := b.get("/", "Accept", acceptPage)
		b.want(page, http.StatusOK, "Once Fired")
		if got := page.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control %q, want no-store", got)
		}
		body := url.Values{"submit_token": {tokenIn(t, page.body)}, "item": {"vase"}, "quantity": {"2"}}.Encode()
		var locations []string
		for range 3 {
			a := b.do(http.MethodPost, "/orders", body, "Content-Type", asForm, "Accept", acceptPage)
			b.want(a, http.StatusSeeOther)
			locations = append(locations, a.header.Get("Location"))
		}
		if locations[0] == "" || locations[1] != locations[0] || locations[2] != locations[0] {
			t.Fatalf("locations %q, want one", locations)
		}
		b.want(b.get(locations[0], "Accept", acceptPage), http.StatusOK,
			"Shoulder vase", "<dd>2</dd>", "124 €", "<b>3 requests</b>", "<b>once</b>")
		c.wantOrders(1)
	})
}

func TestRefusedOrderIsCorrectedUnderTheSameToken(t *testing.T) {
	tests := []struct {
		name, body, problem string
	}{
		{"quantity 0", `{"item":"mug","quantity":0}`, `"errors":{"quantity":"Order at least 1."}`},
		{"negative quantity", `{"item":"mug","quantity":-3}`, `"errors":{"quantity":"Order at least 1."}`},
		{"no quantity", `{"item":"mug"}`, `"errors":{"quantity":"Say how many."}`},
		{"half a mug", `{"item":"mug","quantity":0.5}`, `"errors":{"quantity":"Write a whole number, such as 1."}`},
		{"too many", `{"item":"mug","quantity":99999999999999999999}`, `"errors":{"quantity":"Order at most 1000000."}`},
		{"no item", `{"item":" ","quantity":1}`, `"errors":{"item":"Choose a piece."}`},
		{"NUL in the item", `{"item":"m\u0000g","quantity":1}`, `"errors":{"item":"Use letters, digits and signs only."}`},
		{"both", `{}`, `"errors":{"item":"Choose a piece.","quantity":"Say how many."}`},
	}
	everyFramework(t, func(t *testing.T, c *client) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				token := c.token("form=order")
				refused := c.order(token, asJSON, tt.body)
				c.want(refused, http.StatusUnprocessableEntity, tt.problem)
				if got := refused.header.Get("Content-Type"); got != "application/problem+json" {
					t.Errorf("Content-Type %q, want application/problem+json", got)
				}
				a := c.order(token, asJSON, `{"item":"mug","quantity":1}`)
				c.want(a, http.StatusCreated)
				if a.replayed() {
					t.Error("the corrected order was answered with a replay")
				}
			})
		}
		c.wantOrders(len(tests))
	})
}

func TestRefusedFormComesBackWithItsValues(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		b := c.browser()
		token := tokenIn(t, b.get("/").body)
		send := func(quantity string) answer {
			body := url.Values{"submit_token": {token}, "item": {"bowl"}, "quantity": {quantity}}.Encode()
			return b.do(http.MethodPost, "/orders", body, "Content-Type", asForm, "Accept", acceptPage)
		}
		for _, quantity := range []string{"0", "many", `"><script>`} {
			a := send(quantity)
			b.want(a, http.StatusUnprocessableEntity, `value="bowl" id="item-bowl" checked`, `aria-invalid="true"`)
			if got := tokenIn(t, a.body); got != token {
				t.Errorf("the form came back with another token")
			}
			if strings.Contains(a.body, `"><script>`) {
				t.Error("the value is not escaped")
			}
		}
		b.want(send("0"), http.StatusUnprocessableEntity, `value="0"`, "Order at least 1.")
		b.want(send("4"), http.StatusSeeOther)
		c.wantOrders(1)
	})
}

func TestUnreadableOrderIsRefusedClearly(t *testing.T) {
	tests := []struct {
		name, media, body string
		status            int
		detail            string
	}{
		{"broken JSON", asJSON, `{"item":`, 400, "could not be read as application/json"},
		{"no JSON", asJSON, ``, 400, "the body is empty"},
		{"two objects", asJSON, `{"item":"mug","quantity":1}{}`, 400, "something follows the JSON object"},
		{"item that is no text", asJSON, `{"item":1,"quantity":1}`, 400, "cannot unmarshal number"},
		{"quantity that is no number", asJSON, `{"item":"mug","quantity":true}`, 400, "could not be read"},
		{"multipart without boundary", "multipart/form-data", "x", 400, "could not be read as multipart/form-data"},
		{"text", "text/plain", "a mug, please", 415, "Send the order as application/json"},
		{"no type", "", "a mug, please", 415, "Send the order as application/json"},
		{"too large", asJSON, `{"item":"` + strings.Repeat("x", maxBody) + `","quantity":1}`, 413, "up to 10485760 bytes"},
	}
	everyFramework(t, func(t *testing.T, c *client) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				token := c.token("form=order")
				c.want(c.order(token, tt.media, tt.body), tt.status, tt.detail)
				c.want(c.order(token, asJSON, `{"item":"mug","quantity":1}`), http.StatusCreated)
			})
		}
		c.wantOrders(len(tests))
	})
}

func TestUnknownOrderIsNotFound(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		c.want(c.get("/orders/OF-NONE"), http.StatusNotFound, "There is no such order.")
		c.want(c.get("/orders/OF-NONE", "Accept", acceptPage), http.StatusNotFound, "<h1>Not Found</h1>")
		if got := strings.TrimSpace(c.get("/orders").body); got != "[]" {
			t.Errorf("GET /orders = %s, want []", got)
		}
	})
}
