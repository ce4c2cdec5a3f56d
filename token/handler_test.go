package token_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/submitonce/submitonce/token"
)

// endpoint serves iss's token endpoint and returns a function that sends it a
// request and returns the answer and its body.
func endpoint(t *testing.T, iss *token.Issuer) func(method, query string, header ...string) (*http.Response, string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/submit-token", iss.Handler())
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return func(method, query string, header ...string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(method, srv.URL+"/submit-token", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.RawQuery = query
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}
}

func decodeToken(t *testing.T, body string) token.Token {
	t.Helper()
	var tok token.Token
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&tok); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	return tok
}

func TestEndpointAnswersWithATokenOfTheSubject(t *testing.T) {
	iss := newIssuerWith(t, oneKey(t), token.Config{Subject: userHeader})
	call := endpoint(t, iss)
	before := time.Now().Truncate(time.Millisecond)
	res, body := call("GET", "form=checkout", "X-User", "anna")
	after := time.Now()

	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("answer %d %s %s", res.StatusCode, res.Header.Get("Content-Type"), body)
	}
	tok := decodeToken(t, body)
	if want, _ := json.Marshal(tok); body != string(want)+"\n" {
		t.Errorf("body %q, want the token's JSON, %q", body, want)
	}
	if got := res.Header.Get("X-Submit-Token"); got != tok.Value {
		t.Errorf("header %q, want the token of the body, %q", got, tok.Value)
	}
	c, err := iss.Verify(tok.Value, "checkout", "anna")
	if err != nil {
		t.Fatal(err)
	}
	if c.IssuedAt.Before(before) || c.IssuedAt.After(after) || c.Instance {
		t.Errorf("claims %+v: want a fresh token of now", c)
	}
	if !tok.ExpiresAt.Equal(c.ExpiresAt) || !c.ExpiresAt.Equal(c.IssuedAt.Add(24*time.Hour)) {
		t.Errorf("expires_at %v, in the token %v; want a day after %v", tok.ExpiresAt, c.ExpiresAt, c.IssuedAt)
	}
	if _, err := iss.Verify(tok.Value, "checkout", "ben"); err != token.ErrInvalid {
		t.Errorf("for another subject: Verify = %v, want %v", err, token.ErrInvalid)
	}
}

func TestEndpointIsNeverCached(t *testing.T) {
	iss := newIssuerWith(t, oneKey(t), token.Config{Subject: userHeader})
	call := endpoint(t, iss)
	first, firstBody := call("GET", "form=checkout", "X-User", "anna")
	second, secondBody := call("GET", "form=checkout", "X-User", "anna",
		"If-None-Match", "*", "If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	refused, _ := call("GET", "form=%00", "X-User", "anna")
	for name, res := range map[string]*http.Response{"first": first, "conditional": second, "refused": refused} {
		if got := res.Header.Values("Cache-Control"); len(got) != 1 || got[0] != "no-store" {
			t.Errorf("%s: Cache-Control %q, want no-store", name, got)
		}
		for _, validator := range []string{"Etag", "Last-Modified", "Expires"} {
			if got := res.Header.Get(validator); got != "" {
				t.Errorf("%s: %s %q, want none", name, validator, got)
			}
		}
	}
	if second.StatusCode != 200 {
		t.Fatalf("conditional request: %d, want 200", second.StatusCode)
	}
	if decodeToken(t, firstBody).Value == decodeToken(t, secondBody).Value {
		t.Error("two calls gave the same token")
	}
}

func TestEndpointGivesAnInstanceTheSameTokenInEveryTab(t *testing.T) {
	iss := newIssuerWith(t, oneKey(t), token.Config{Subject: userHeader})
	call := endpoint(t, iss)
	record := func(query, user string) string {
		t.Helper()
		res, body := call("GET", query, "X-User", user)
		if res.StatusCode != 200 {
			t.Fatalf("%s for %s: %d %s", query, user, res.StatusCode, body)
		}
		c, err := iss.Verify(decodeToken(t, body).Value, "checkout", user)
		if err != nil || !c.Instance {
			t.Fatalf("%s for %s: %+v, %v; want an instance", query, user, c, err)
		}
		return key(c)
	}
	tab1 := record("form=checkout&instance=cart-42", "anna")
	tab2 := record("instance=cart-42&form=checkout&_=1", "anna")
	other := record("form=checkout&instance=cart-43", "anna")
	ben := record("form=checkout&instance=cart-42", "ben")
	if tab1 != tab2 || tab1 == other || tab1 == ben {
		t.Errorf("records: tabs %s and %s, other cart %s, other subject %s; want the tabs' the same and no other", tab1, tab2, other, ben)
	}
}

func TestEndpointSharesInstancesOnlyIfTold(t *testing.T) {
	call := endpoint(t, newIssuer(t, oneKey(t)))
	if res, body := call("GET", "instance=cart-42"); res.StatusCode != 403 {
		t.Errorf("no subject function: %d %s, want 403", res.StatusCode, body)
	}
	iss := newIssuerWith(t, oneKey(t), token.Config{SharedInstances: true})
	call = endpoint(t, iss)
	res, body := call("GET", "instance=cart-42")
	if res.StatusCode != 200 {
		t.Fatalf("SharedInstances: %d %s, want 200", res.StatusCode, body)
	}
	if c, err := iss.Verify(decodeToken(t, body).Value, "", ""); err != nil || !c.Instance {
		t.Errorf("Verify = %+v, %v; want an instance", c, err)
	}
}

func TestEndpointAnswersHeadAndOptions(t *testing.T) {
	iss := newIssuer(t, oneKey(t))
	call := endpoint(t, iss)
	_, get := call("GET", "form=checkout")
	res, body := call("HEAD", "form=checkout")
	if res.StatusCode != 200 || body != "" || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("HEAD: %d, body %q, %v", res.StatusCode, body, res.Header)
	}
	if _, err := iss.Verify(res.Header.Get(token.HeaderName), "checkout", ""); err != nil {
		t.Errorf("HEAD: the header's token: %v", err)
	}
	// The time's trailing zeros are cut, so that lengths vary by up to four.
	if n, err := strconv.Atoi(res.Header.Get("Content-Length")); err != nil || n < len(get)-4 || n > len(get)+4 {
		t.Errorf("HEAD: Content-Length %q, GET's body has %d", res.Header.Get("Content-Length"), len(get))
	}

	res, body = call("OPTIONS", "form=checkout", "Origin", "https://shop.example", "Access-Control-Request-Method", "GET")
	if res.StatusCode != 204 || body != "" || res.Header.Get("Allow") != "GET, HEAD, OPTIONS" || res.Header.Get(token.HeaderName) != "" {
		t.Errorf("OPTIONS: %d, body %q, %v; want 204 and Allow, and no token", res.StatusCode, body, res.Header)
	}
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("OPTIONS: %s is set, which is not the endpoint's business", name)
		}
	}
}
