package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"testing"
)

func TestFormThatIsSentAgainGetsTheFirstAnswer(t *testing.T) {
	server := httptest.NewServer(newHandler())
	defer server.Close()
	read := func(resp *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	load := func() string {
		t.Helper()
		_, page := read(server.Client().Get(server.URL + "/"))
		m := regexp.MustCompile(`name="submit_token" value="([^"]+)"`).FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("the page has no token: %s", page)
		}
		return m[1]
	}
	send := func(token string) (int, string) {
		t.Helper()
		return read(server.Client().PostForm(server.URL+"/orders", url.Values{"submit_token": {token}, "item": {"A mug"}}))
	}

	token := load()
	for range 3 {
		if status, body := send(token); status != http.StatusCreated || body != "A mug is order 1\n" {
			t.Errorf("order = %d %q, want 201 and order 1", status, body)
		}
	}
	if status, body := send(load()); status != http.StatusCreated || body != "A mug is order 2\n" {
		t.Errorf("order of a new page = %d %q, want 201 and order 2", status, body)
	}
	if status, _ := send(""); status != http.StatusBadRequest {
		t.Errorf("order without a token: status %d, want 400", status)
	}
	if status, script := read(server.Client().Get(server.URL + "/submitonce.js")); status != http.StatusOK || script == "" {
		t.Errorf("GET /submitonce.js = %d with %d bytes, want the browser client", status, len(script))
	}
}
