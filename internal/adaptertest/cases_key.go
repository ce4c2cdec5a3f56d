package adaptertest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

func keyCases() []testCase {
	cases := []testCase{
		{name: "C28 R019 foreign token is refused and the owner's works", run: func(s *site) {
			s.orders(func(x Exchange) error { return x.Text(201, "for ann alone") }, replay.Config{})
			r := request{token: s.tokens.Issue("", "ann").Value, header: http.Header{"X-User": {"ann"}}}
			stolen := r
			stolen.header = http.Header{"X-User": {"bob"}}
			s.problem(s.send(stolen), 403, "invalid-token")
			first := s.send(r)
			s.problem(s.send(stolen), 403, "invalid-token")
			s.replays(first, s.send(r))
			s.ran(1)
		}},
		{name: "C29 R118 token that expired unclaimed says so", run: func(s *site) {
			s.tokens = s.issuer(token.Config{TTL: time.Millisecond})
			tok := s.tokens.Issue("", "")
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{})
			s.until("the token to expire", func() bool { return time.Now().After(tok.ExpiresAt) })
			a := s.send(request{token: tok.Value})
			s.problem(a, 403, "expired-token")
			if !strings.Contains(string(a.body), `"unclaimed":true`) {
				s.Errorf("problem is %s, want unclaimed in it", a.body)
			}
			s.ran(0)
		}},
		{name: "C29 token that was claimed in time replays after its end", run: func(s *site) {
			s.tokens = s.issuer(token.Config{TTL: 2 * time.Second})
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{})
			tok := s.tokens.Issue("", "")
			first := s.send(request{token: tok.Value})
			s.until("the token to expire", func() bool { return time.Now().After(tok.ExpiresAt) })
			s.replays(first, s.send(request{token: tok.Value}))
			s.ran(1)
		}},
		{name: "C26 C51 R071 OPTIONS and GET pass untouched", run: func(s *site) {
			h := s.count(func(x Exchange) error { return x.NoContent(204) })
			s.open(App{Routes: []Route{{"OPTIONS", "/orders", h}, {"GET", "/orders", h}}}, replay.Config{})
			preflight := http.Header{
				"Origin": {"https://a.example"}, "Access-Control-Request-Method": {"POST"},
				"Access-Control-Request-Headers": {"x-submit-token"},
			}
			for _, method := range []string{"OPTIONS", "GET"} {
				if a := s.send(request{method: method, header: preflight}); a.status != 204 {
					s.Errorf("%s answers %d, want 204", method, a.status)
				}
			}
			s.ran(2)
			if n := s.store.calls.Load(); n != 0 {
				s.Errorf("store was called %d times, want 0", n)
			}
		}},
		{name: "R074 hidden field without JavaScript", run: func(s *site) {
			s.orders(func(x Exchange) error { return x.Text(201, x.Form("item")) }, replay.Config{})
			body := url.Values{"item": {"tea"}, token.FieldName: {s.token()}}.Encode()
			first := s.send(request{kind: formType, body: body})
			if first.status != 201 || string(first.body) != "tea" {
				s.Errorf("form answers %d %q, want 201 tea", first.status, first.body)
			}
			s.replays(first, s.send(request{kind: formType, body: body}))
			s.ran(1)
		}},
		{name: "C71 R103 changed form under a used token", run: func(s *site) {
			s.orders(func(x Exchange) error { return x.Text(201, x.Form("item")) }, replay.Config{})
			field := token.FieldName + "=" + s.token()
			first := s.send(request{kind: formType, body: "item=tea&" + field})
			s.problem(s.send(request{kind: formType, body: "item=milk&" + field}), 422, "payload-mismatch")
			// The header instead of the field is still the same submit.
			tok := strings.TrimPrefix(field, token.FieldName+"=")
			s.replays(first, s.send(request{kind: formType, body: "item=tea", token: tok}))
			s.ran(1)
		}},
		{name: "R102 tokens of many tabs are independent", run: func(s *site) {
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{})
			var tokens []string
			for range 11 {
				tokens = append(tokens, s.token())
			}
			for i := range tokens {
				tok := tokens[(i*7)%len(tokens)]
				if a := s.send(request{token: tok}); a.status != 201 {
					s.Errorf("token %d answers %d, want 201", i, a.status)
				}
			}
			s.ran(11)
		}},
		{name: "R113 R127 refusal is a page for who asks for HTML", run: func(s *site) {
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{})
			a := s.send(request{header: http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}}})
			if a.status != 400 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") ||
				!strings.Contains(string(a.body), "<title>No submit token") {
				s.Errorf("answer is %d %s %q, want a page with 400", a.status, a.header.Get("Content-Type"), a.body)
			}
		}},
	}
	return append(cases, refusedCases()...)
}

// None of these requests may reach the store or the handler.
func refusedCases() []testCase {
	forged := func(s *site) string {
		t := []byte(s.token())
		at := len(t) - 5
		t[at] = map[bool]byte{true: 'B', false: 'A'}[t[at] == 'A']
		return string(t)
	}
	tests := []struct {
		name   string
		status int
		code   string
		make   func(s *site) request
	}{
		{"no key", 400, "missing-key", func(*site) request { return request{body: "x"} }},
		{"no key in a form", 400, "missing-key", func(*site) request {
			return request{kind: formType, body: "item=tea"}
		}},
		{"R023 empty token", 400, "missing-key", func(*site) request {
			return request{header: http.Header{token.HeaderName: {""}}}
		}},
		{"R023 blank token", 400, "missing-key", func(*site) request {
			return request{kind: formType, body: token.FieldName + "=+++"}
		}},
		{"C23 R023 9000 characters", 400, "malformed-key", func(*site) request {
			return request{token: strings.Repeat("a", 9000)}
		}},
		{"C23 R023 percent-encoded CR LF", 400, "malformed-key", func(*site) request {
			return request{token: "%0d%0aX: 1"}
		}},
		{"C23 R023 characters that steer stores", 400, "malformed-key", func(*site) request {
			return request{token: "a:{b}*"}
		}},
		{"C23 bytes over 7F", 400, "malformed-key", func(*site) request { return request{token: "t\xc3\xb6ken"} }},
		{"C23 NUL in the hidden field", 400, "malformed-key", func(*site) request {
			return request{kind: formType, body: token.FieldName + "=a%00b"}
		}},
		{"C27 R020 forged token", 403, "invalid-token", func(s *site) request { return request{token: forged(s)} }},
		{"C27 forged hidden field", 403, "invalid-token", func(s *site) request {
			return request{kind: formType, body: token.FieldName + "=" + forged(s)}
		}},
		{"token of another form", 403, "invalid-token", func(s *site) request {
			return request{token: s.tokens.Issue("other", "").Value}
		}},
		{"C28 C76 token of another subject", 403, "invalid-token", func(s *site) request {
			return request{token: s.tokens.Issue("", "ann").Value, header: http.Header{"X-User": {"bob"}}}
		}},
		{"C25 two tokens in the header", 400, "conflicting-keys", func(s *site) request {
			return request{header: http.Header{token.HeaderName: {s.token(), s.token()}}}
		}},
		{"C25 two tokens joined by a proxy", 400, "conflicting-keys", func(s *site) request {
			return request{token: s.token() + ", " + s.token()}
		}},
		{"C26 header and field differ", 400, "conflicting-keys", func(s *site) request {
			return request{token: s.token(), kind: formType, body: "a=b&" + token.FieldName + "=" + s.token()}
		}},
		{"C26 two hidden fields differ", 400, "conflicting-keys", func(s *site) request {
			return request{kind: formType, body: fmt.Sprintf("%[1]s=%[2]s&%[1]s=%[3]s", token.FieldName, s.token(), s.token())}
		}},
		{"C34 form over the limit", 413, "body-too-large", func(*site) request {
			return request{kind: formType, body: "note=" + strings.Repeat("x", 5000)}
		}},
	}
	var cases []testCase
	for _, tt := range tests {
		cases = append(cases, testCase{name: "refused without a store call: " + tt.name, run: func(s *site) {
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{FormLimit: 4096})
			s.problem(s.send(tt.make(s)), tt.status, tt.code)
			s.ran(0)
			if n := s.store.calls.Load(); n != 0 {
				s.Errorf("store was called %d times, want 0", n)
			}
		}})
	}
	return append(cases, testCase{name: "C25 same token twice is one token", run: func(s *site) {
		s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{})
		tok := s.token()
		first := s.send(request{header: http.Header{token.HeaderName: {tok, tok}}})
		s.replays(first, s.send(request{token: tok + ", " + tok}))
		s.ran(1)
	}})
}
