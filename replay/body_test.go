package replay_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/replay"
)

const urlencoded = "application/x-www-form-urlencoded"

// serveHTTP serves next behind a guard on a real connection.
func serveHTTP(t *testing.T, c replay.Config, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	g := newGuard(t, newMemstore(t), c)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.Serve(w, r, next) }))
	t.Cleanup(s.Close)
	return s
}

// post sends one POST, with the token in the header if there is one, and returns
// the response with its body read.
func post(t *testing.T, s *httptest.Server, tok, contentType string, body io.Reader) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/orders", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept-Encoding", "br") // and so no gzip
	if tok != "" {
		r.Header.Set("X-Submit-Token", tok)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func TestErrorHandlerSeesWhatWasPosted(t *testing.T) {
	var item string
	s := serveHTTP(t, replay.Config{OnError: func(w http.ResponseWriter, r *http.Request, err error) {
		item = r.FormValue("item")
		replay.DefaultOnError(w, r, err)
	}}, created("ok"))
	used := freshToken(t)
	post(t, s, used, urlencoded, strings.NewReader("item=tea"))
	for _, c := range []struct{ name, header, body string }{
		{"no token", "", "item=milk"},
		{"a malformed token in the field", "", "item=milk&submit_token=no"},
		{"a forged token in the field", "", "item=milk&submit_token=" + strings.ToUpper(freshToken(t))},
		{"another content, token in the field", "", "item=milk&submit_token=" + used},
		{"another content, token in the header", used, "item=milk"},
	} {
		item = ""
		resp, _ := post(t, s, c.header, urlencoded, strings.NewReader(c.body))
		if resp.StatusCode < 400 || item != "milk" {
			t.Errorf("%s: status %d, the error handler saw item %q, want milk", c.name, resp.StatusCode, item)
		}
	}
}

func TestSubjectMayReadTheForm(t *testing.T) {
	s := serveHTTP(t, replay.Config{Subject: func(r *http.Request) string { return r.FormValue("tenant") }},
		func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.FormValue("item")) })
	tok := newTokens(t).Issue("", "acme").Value
	for _, header := range []string{tok, ""} {
		body := "tenant=acme&item=tea"
		if header == "" {
			body += "&submit_token=" + newTokens(t).Issue("", "acme").Value
		}
		if resp, got := post(t, s, header, urlencoded, strings.NewReader(body)); resp.StatusCode != 200 || got != "tea" {
			t.Errorf("token in header %v: got %d %q, want 200 tea", header != "", resp.StatusCode, got)
		}
	}
}

func TestBodyThatTheHandlerClosesIsStillCompared(t *testing.T) {
	s := serveHTTP(t, replay.Config{}, func(w http.ResponseWriter, r *http.Request) {
		var order struct{ Note string }
		err := json.NewDecoder(r.Body).Decode(&order) // leaves what follows the value
		_ = r.Body.Close()
		_, again := r.Body.Read(make([]byte, 1))
		_, _ = fmt.Fprint(w, err, len(order.Note), again == http.ErrBodyReadAfterClose)
	})
	note := func(c string) io.Reader { // chunked, and too large to be read ahead
		return io.MultiReader(strings.NewReader(`{"Note":"`+strings.Repeat(c, 100<<10)+`"}`), strings.NewReader("\n"))
	}
	tok := freshToken(t)
	if resp, body := post(t, s, tok, "application/json", note("a")); resp.StatusCode != 200 || body != "<nil> 102400 true" {
		t.Errorf("the first got %d %q", resp.StatusCode, body)
	}
	if resp, _ := post(t, s, tok, "application/json", note("a")); resp.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same content got %d, want a replay", resp.StatusCode)
	}
	if resp, _ := post(t, s, tok, "application/json", note("b")); resp.StatusCode != 422 {
		t.Errorf("another content got %d, want 422", resp.StatusCode)
	}
}

func TestFieldIsFoundUnderAnEscapedName(t *testing.T) {
	s := serveHTTP(t, replay.Config{TokenField: "order[token]"}, created("ok"))
	form := url.Values{"order[token]": {freshToken(t)}, "item": {"tea"}}
	if resp, body := post(t, s, "", urlencoded, strings.NewReader(form.Encode())); resp.StatusCode != 201 {
		t.Errorf("got %d %s, want 201", resp.StatusCode, body)
	}
}

func TestSubjectMayReadABodyThatIsNoForm(t *testing.T) {
	type order struct{ Tenant, Note string }
	var got string
	s := serveHTTP(t, replay.Config{Subject: func(r *http.Request) string {
		var o order
		_ = json.NewDecoder(r.Body).Decode(&o)
		return o.Tenant
	}}, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = string(b)
		w.WriteHeader(http.StatusCreated)
	})
	body := `{"Tenant":"acme","Note":"` + strings.Repeat("n", 5000) + `"}`
	tok := newTokens(t).Issue("", "acme").Value
	for i, replayed := range []string{"", "true"} {
		resp, _ := post(t, s, tok, "application/json", strings.NewReader(body))
		if resp.StatusCode != http.StatusCreated || resp.Header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("submit %d: %d, replayed %q; want 201, %q", i+1, resp.StatusCode, resp.Header.Get("Idempotent-Replayed"), replayed)
		}
	}
	if got != body {
		t.Errorf("the handler read %d bytes, want the whole body of %d", len(got), len(body))
	}
	if resp, _ := post(t, s, tok, "application/json", strings.NewReader(`{"Tenant":"other"}`)); resp.StatusCode != http.StatusForbidden {
		t.Errorf("another tenant: %d, want 403", resp.StatusCode)
	}

	// A part of this one could not be read again.
	got = "not run"
	large := strings.NewReader(`{"Note":"` + strings.Repeat("n", 70<<10) + `","Tenant":"acme"}`)
	if resp, _ := post(t, s, newTokens(t).Issue("", "acme").Value, "application/json", large); resp.StatusCode != http.StatusRequestEntityTooLarge || got != "not run" {
		t.Errorf("over 64 KiB: %d, the handler got %.10q; want 413 and no run", resp.StatusCode, got)
	}
}
