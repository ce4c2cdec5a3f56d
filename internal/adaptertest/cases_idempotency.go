package adaptertest

import (
	"errors"
	"net/http"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// keyed returns a request with an Idempotency-Key, from ann unless a header says
// otherwise.
func keyed(key ...string) request {
	return request{header: http.Header{"Idempotency-Key": key, "X-User": {"ann"}}}
}

func (r request) from(user string) request {
	r.header = r.header.Clone()
	r.header.Set("X-User", user)
	return r
}

func (r request) to(method, path string) request {
	r.method, r.path = method, path
	return r
}

func idempotencyKeyCases() []testCase {
	accepted := replay.Config{IdempotencyKey: true}
	created := func(x Exchange) error {
		return x.JSON(201, map[string]string{"for": x.Request().Header.Get("X-User"), "path": x.Request().URL.Path})
	}
	return []testCase{
		{name: "C24 quoted and bare key are the same", run: func(s *site) {
			s.orders(created, accepted)
			first := s.send(keyed(`"8e03978e"`))
			s.replays(first, s.send(keyed("8e03978e")))
			s.replays(first, s.send(keyed(`"8e03978e"`, `"8e03978e"`)))
			s.replays(first, s.send(keyed(`"8e03978e", "8e03978e"`)))
			s.ran(1)
		}},
		{name: "C25 two different keys", run: func(s *site) {
			s.orders(created, accepted)
			s.problem(s.send(keyed("one", "two")), 400, "conflicting-keys")
			s.problem(s.send(keyed(`"one", "two"`)), 400, "conflicting-keys")
			s.ran(0)
		}},
		{name: "C23 malformed and missing keys", run: func(s *site) {
			s.orders(created, accepted)
			long := make([]byte, 10_000)
			for i := range long {
				long[i] = 'k'
			}
			for _, key := range []string{`"open`, "two words", `"tab	inside"`, "emoji \xf0\x9f\x98\x80", "\xff\xfe", string(long)} {
				s.problem(s.send(keyed(key)), 400, "malformed-key")
			}
			for _, key := range []string{"", "   ", `""`, `"   "`} {
				s.problem(s.send(keyed(key)), 400, "missing-key")
			}
			s.ran(0)
			if n := s.store.calls.Load(); n != 0 {
				s.Errorf("store was called %d times, want 0", n)
			}
		}},
		{name: "C21 R019 same key of two users is two records", run: func(s *site) {
			s.orders(created, accepted)
			first := s.send(keyed("k"))
			other := s.send(keyed("k").from("bob"))
			if string(first.body) == string(other.body) || other.status != 201 {
				s.Errorf("bob gets %d %s, want an answer of his own", other.status, other.body)
			}
			s.replays(first, s.send(keyed("k")))
			s.replays(other, s.send(keyed("k").from("bob")))
			s.ran(2)
		}},
		{name: "C20 C22 R021 key on another target or by another method", run: func(s *site) {
			h := s.count(created)
			s.open(App{Routes: []Route{
				{"POST", "/projects", h}, {"POST", "/applications", h},
				{"PUT", "/tickets/{id}", h}, {"PATCH", "/tickets/{id}", h},
			}}, accepted)
			first := s.send(keyed("k").to("POST", "/projects"))
			s.problem(s.send(keyed("k").to("POST", "/applications")), 422, "payload-mismatch")
			s.problem(s.send(keyed("k").to("POST", "/projects?draft=1")), 422, "payload-mismatch")
			s.replays(first, s.send(keyed("k").to("POST", "/projects")))

			first = s.send(keyed("t").to("PUT", "/tickets/1"))
			s.problem(s.send(keyed("t").to("PUT", "/tickets/2")), 422, "payload-mismatch")
			s.problem(s.send(keyed("t").to("PATCH", "/tickets/1")), 422, "payload-mismatch")
			s.replays(first, s.send(keyed("t").to("PUT", "/tickets/1")))
			s.ran(2)
		}},
		{name: "R075 browser's own Idempotency-Key does not count against a token", run: func(s *site) {
			s.orders(created, accepted)
			r := keyed(`"one"`).from("")
			r.token = s.token()
			first := s.send(r)
			r.header.Set("Idempotency-Key", `"another after a reload"`)
			s.replays(first, s.send(r))
			s.ran(1)
		}},
		{name: "R075 Idempotency-Key does not count where it is not accepted", run: func(s *site) {
			s.orders(created, replay.Config{})
			s.problem(s.send(keyed("k")), 400, "missing-key")
			s.ran(0)
		}},
		{name: "key function names the record", run: func(s *site) {
			s.orders(func(x Exchange) error {
				return x.Text(200, x.Form("transaction"))
			}, replay.Config{Key: func(r *http.Request) (string, error) {
				if r.Header.Get("X-Signature") != "good" {
					return "", errors.New("unsigned")
				}
				return r.FormValue("transaction"), nil
			}})
			signed := http.Header{"X-Signature": {"good"}}
			r := request{kind: formType, body: "transaction=T1", header: signed}
			first := s.send(r)
			if string(first.body) != "T1" {
				s.Errorf("handler sees %q, want T1", first.body)
			}
			s.replays(first, s.send(r))
			s.problem(s.send(request{kind: formType, body: "other=1", header: signed}), 400, "missing-key")
			s.problem(s.send(request{kind: formType, body: "transaction=T2"}), 400, "malformed-key")
			s.ran(1)
		}},
		{name: "C36 bytes of JSON decide", run: func(s *site) {
			s.orders(created, replay.Config{})
			r := request{token: s.token(), kind: jsonType, body: `{"a":1,"b":2}`}
			first := s.send(r)
			r.body = `{"b":2,"a":1}`
			s.problem(s.send(r), 422, "payload-mismatch")
			r.body = `{"a":1,"b":2}`
			s.replays(first, s.send(r))
			s.ran(1)
		}},
		{name: "forms that the guard names", run: func(s *site) {
			s.orders(created, replay.Config{Forms: []string{"checkout", "quick"}})
			for _, form := range []string{"checkout", "quick"} {
				r := request{header: http.Header{token.HeaderName: {s.tokens.Issue(form, "").Value}}}
				s.replays(s.send(r), s.send(r))
			}
			s.problem(s.send(request{token: s.token()}), 403, "invalid-token")
			s.ran(2)
		}},
	}
}
