package token_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/token"
)

func TestEndpointTakesTheNamesAsTheyAre(t *testing.T) {
	iss := newIssuerWith(t, oneKey(t), token.Config{Subject: userHeader})
	call := endpoint(t, iss)
	for _, form := range []string{"", "a", "orders/new?x=1&y=2", "Bestellung Ü", "订单", strings.Repeat("f", token.MaxFormLen)} {
		res, body := call("GET", url.Values{"form": {form}}.Encode())
		if res.StatusCode != 200 {
			t.Errorf("form %q: %d %s", form, res.StatusCode, body)
			continue
		}
		if _, err := iss.Verify(decodeToken(t, body).Value, form, ""); err != nil {
			t.Errorf("form %q: Verify = %v", form, err)
		}
	}
	for _, instance := range []string{"cart-42", "车", strings.Repeat("i", token.MaxInstanceLen)} {
		res, body := call("GET", url.Values{"instance": {instance}}.Encode(), "X-User", "anna")
		if res.StatusCode != 200 {
			t.Errorf("instance %q: %d %s", instance, res.StatusCode, body)
			continue
		}
		c, err := iss.Verify(decodeToken(t, body).Value, "", "anna")
		want, wantErr := iss.Verify(iss.IssueInstance("", "anna", instance).Value, "", "anna")
		if err != nil || wantErr != nil || key(c) != key(want) {
			t.Errorf("instance %q: record %s, %v; want that of IssueInstance, %s, %v", instance, key(c), err, key(want), wantErr)
		}
	}
}

func TestEndpointRefuses(t *testing.T) {
	named := newIssuerWith(t, oneKey(t), token.Config{Subject: userHeader})
	tests := []struct {
		name, method, query string
		status              int
		code, detail        string
	}{
		{"form too long", "GET", "form=" + strings.Repeat("f", 129), 400, "invalid-token-request", "The parameter form has 129 bytes; it may have 128."},
		{"instance too long", "GET", "instance=" + strings.Repeat("i", 256), 400, "invalid-token-request", "The parameter instance has 256 bytes; it may have 255."},
		{"NUL", "GET", "form=a%00b", 400, "invalid-token-request", "The parameter form holds a control character."},
		{"line break", "GET", "form=a&instance=b%0D%0AX:y", 400, "invalid-token-request", "The parameter instance holds a control character."},
		{"C1 control", "GET", "form=%C2%85", 400, "invalid-token-request", "The parameter form holds a control character."},
		{"Latin-1", "GET", "form=Gr%FC%DFe", 400, "invalid-token-request", "The parameter form is not valid UTF-8."},
		{"form twice", "GET", "form=a&form=b", 400, "invalid-token-request", "The parameter form is there more than once."},
		{"instance twice", "GET", "instance=a&instance=a", 400, "invalid-token-request", "The parameter instance is there more than once."},
		{"empty instance", "GET", "form=a&instance=", 400, "invalid-token-request", "The parameter instance is empty; leave it out for a fresh token."},
		{"bad escape", "GET", "form=%zz", 400, "invalid-token-request", "The query is not well-formed."},
		{"semicolon", "GET", "form=a;instance=b", 400, "invalid-token-request", "The query is not well-formed."},
		{"instance of nobody", "GET", "form=a&instance=cart-42", 403, "missing-subject", "An instance token is bound to its subject, such as a session, and this request has none."},
		{"POST", "POST", "form=a", 405, "method-not-allowed", "The token endpoint answers GET only."},
		{"DELETE", "DELETE", "form=a", 405, "method-not-allowed", "The token endpoint answers GET only."},
	}
	call := endpoint(t, named)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, body := call(tt.method, tt.query)
			if res.StatusCode != tt.status || res.Header.Get("Content-Type") != "application/problem+json" {
				t.Fatalf("answer %d %s %s, want a problem with %d", res.StatusCode, res.Header.Get("Content-Type"), body, tt.status)
			}
			if res.Header.Get(token.HeaderName) != "" {
				t.Error("a token came with the refusal")
			}
			if allow := res.Header.Get("Allow"); (allow == "GET, HEAD, OPTIONS") != (tt.status == 405) {
				t.Errorf("Allow %q", allow)
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"type":      "https://github.com/submitonce/submitonce/blob/main/docs/problems.md#" + tt.code,
				"title":     http.StatusText(tt.status),
				"status":    float64(tt.status),
				"detail":    tt.detail,
				"retryable": false,
			}
			for k, v := range want {
				if got[k] != v {
					t.Errorf("%s is %v, want %v", k, got[k], v)
				}
			}
			if len(got) != len(want) {
				t.Errorf("problem %s has other members than %v", body, want)
			}
		})
	}
}
