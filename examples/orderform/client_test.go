package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

const (
	asJSON = "application/json"
	asForm = "application/x-www-form-urlencoded"

	// What a browser's navigation accepts.
	acceptPage = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
)

// everyFramework runs f against a shop on each framework, with a store of its own.
func everyFramework(t *testing.T, f func(t *testing.T, c *client), change ...func(*options)) {
	t.Helper()
	for _, framework := range frameworks {
		t.Run(framework, func(t *testing.T) {
			o := options{framework: framework, store: "memory"}
			for _, c := range change {
				c(&o)
			}
			f(t, newClient(t, newTestServer(t, o)))
		})
	}
}

var discard = slog.New(slog.DiscardHandler)

func newTestServer(t *testing.T, o options) *httptest.Server {
	t.Helper()
	b, err := openBackend(t.Context(), o, discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	s, err := newShop(o, bytes.Repeat([]byte{7}, secretLen), b, discard)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(s.journal.close)
	return server
}

// A client is somebody with a browser or curl.
type client struct {
	t    *testing.T
	base string
	http *http.Client
}

// newClient returns a client without cookies that follows no redirects.
func newClient(t *testing.T, server *httptest.Server) *client {
	t.Helper()
	// Without keep-alive, net/http does not send anything twice by itself.
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t: t, base: server.URL, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// browser returns a client of the same shop with cookies of its own.
func (c *client) browser() *client {
	c.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	b := *c
	h := *c.http
	h.Jar = jar
	b.http = &h
	return &b
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// try sends a request. The header is pairs of name and value.
func (c *client) try(method, path, body string, header ...string) (answer, error) {
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

// do is try where nothing may go wrong.
func (c *client) do(method, path, body string, header ...string) answer {
	c.t.Helper()
	a, err := c.try(method, path, body, header...)
	if err != nil {
		c.t.Error(err)
	}
	return a
}

func (c *client) get(path string, header ...string) answer {
	c.t.Helper()
	return c.do(http.MethodGet, path, "", header...)
}

// order submits body under a token.
func (c *client) order(token, media, body string, header ...string) answer {
	c.t.Helper()
	return c.do(http.MethodPost, "/orders", body,
		append([]string{"X-Submit-Token", token, "Content-Type", media}, header...)...)
}

// token draws a token for what query says, such as "form=order".
func (c *client) token(query string) string {
	c.t.Helper()
	a := c.get("/submit-token?" + query)
	var t struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(a.body), &t); err != nil || t.Token == "" {
		c.t.Fatalf("GET /submit-token?%s = %d %s", query, a.status, a.body)
	}
	return t.Token
}

// orders returns the orders that exist.
func (c *client) orders() []order {
	c.t.Helper()
	a := c.get("/orders")
	var orders []order
	if err := json.Unmarshal([]byte(a.body), &orders); err != nil {
		c.t.Fatalf("GET /orders = %d %s", a.status, a.body)
	}
	return orders
}

func (c *client) wantOrders(want int) {
	c.t.Helper()
	if got := c.orders(); len(got) != want {
		c.t.Errorf("%d orders exist, want %d: %v", len(got), want, got)
	}
}

// want checks an answer's status and that its body has the texts.
func (c *client) want(a answer, status int, texts ...string) {
	c.t.Helper()
	if a.status != status {
		c.t.Errorf("status %d, want %d: %s", a.status, status, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			c.t.Errorf("the answer does not have %q: %s", text, a.body)
		}
	}
}

func orderIn(t *testing.T, a answer) order {
	t.Helper()
	var o order
	if err := json.Unmarshal([]byte(a.body), &o); err != nil || o.No == "" {
		t.Fatalf("not an order: %d %s", a.status, a.body)
	}
	return o
}

var hiddenToken = regexp.MustCompile(`name="submit_token" value="([^"]+)"`)

func tokenIn(t *testing.T, page string) string {
	t.Helper()
	m := hiddenToken.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no hidden token: %s", page)
	}
	return m[1]
}
