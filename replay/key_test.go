package replay_test

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

func TestConfigIsCheckedWhole(t *testing.T) {
	store, tokens := newMemstore(t), newTokens(t)
	unbound, err := token.New(must(token.NewKeyring(bytes.Repeat([]byte("k"), 32))), token.Config{})
	if err != nil {
		t.Fatal(err)
	}
	someone := func(*http.Request) string { return "u" }
	tests := []struct {
		name string
		c    replay.Config
		want []string // what the error says; none means no error
	}{
		{"tokens alone", replay.Config{Tokens: tokens}, nil},
		{"no source of keys", replay.Config{}, []string{"Config.Tokens is not set"}},
		{"tokens with both places off", replay.Config{Tokens: tokens, TokenHeader: replay.Off, TokenField: replay.Off}, []string{"no request could have a key"}},
		{"guessable keys", replay.Config{IdempotencyKey: true}, []string{"set Subject", "SharedKeys"}},
		{"guessable keys beside unbound tokens", replay.Config{Tokens: unbound, IdempotencyKey: true}, []string{"set Subject"}},
		{"guessable keys with a subject", replay.Config{IdempotencyKey: true, Subject: someone}, nil},
		{"guessable keys with the tokens' subject", replay.Config{Tokens: tokens, IdempotencyKey: true}, nil},
		{"keys shared on purpose", replay.Config{IdempotencyKey: true, SharedKeys: true}, nil},
		{"underscore in a header", replay.Config{Tokens: tokens, TokenHeader: "submit_token"}, []string{`TokenHeader is "submit_token"`, "hyphen"}},
		{"bad marker", replay.Config{Tokens: tokens, ReplayedHeader: "a b"}, []string{`ReplayedHeader is "a b"`}},
		{"short lease", replay.Config{Tokens: tokens, Lease: time.Millisecond}, []string{"Lease is 1ms"}},
		{"records shorter than tokens", replay.Config{Tokens: tokens, Retention: time.Hour}, []string{"Retention is 1h0m0s", "24h0m0s"}},
		{"retention within the lease", replay.Config{Key: func(*http.Request) (string, error) { return "", nil }, Lease: time.Hour, Retention: time.Minute}, []string{"not longer than the lease"}},
		{"short encryption key", replay.Config{Tokens: tokens, EncryptionKeys: [][]byte{make([]byte, 16)}}, []string{"EncryptionKeys[0] has 16 bytes"}},
		{"encryption key twice", replay.Config{Tokens: tokens, EncryptionKeys: [][]byte{make([]byte, 32), make([]byte, 32)}}, []string{"EncryptionKeys[1] is there twice"}},
		{"all at once", replay.Config{Lease: -1, FormLimit: -1, ResponseLimit: -1, Reruns: -1, StoreTimeout: -1}, []string{
			"Lease", "FormLimit", "ResponseLimit", "Reruns", "StoreTimeout", "Tokens is not set",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := replay.New(store, tt.c)
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("New = %v, want an error: %v", err, tt.want != nil)
			}
			for _, text := range tt.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %q does not say %q", err, text)
				}
			}
		})
	}
	if _, err := replay.New(nil, replay.Config{Tokens: tokens}); err == nil || !strings.Contains(err.Error(), "store is nil") {
		t.Errorf("New(nil) = %v, want an error that says so", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// send makes a POST and returns the answer.
func send(g *replay.Guard, r *http.Request, next http.HandlerFunc) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	g.Serve(w, r, next)
	return w
}

func TestExpiredToken(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		name      string
		claimedAt duration // 0: never
		sentAt    duration
		status    int
		unclaimed bool
		calls     int64 // of the store, by the late request
	}{
		{"in time", 0, day - time.Minute, 201, false, 2},
		{"never claimed", 0, day + time.Minute, 403, true, 1},
		{"never claimed, within the retention", 0, 7*day - time.Minute, 403, true, 1},
		{"who knows", 0, 7*day + time.Minute, 403, false, 1},
		{"older than any record", 0, 9 * day, 403, false, 0},
		{"claimed in time, replayed late", time.Minute, 6 * day, 201, false, 2},
		{"claimed at the last minute, replayed at the last", day - time.Minute, 8*day - 2*time.Minute, 201, false, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &countingStore{Store: newMemstore(t)}
				g := newGuard(t, store, replay.Config{})
				tok := freshToken(t)
				if tt.claimedAt > 0 {
					time.Sleep(tt.claimedAt)
					answer(t, "the first", serve(g, t.Context(), tok, "{}", created("order 1")), 201, "order 1", false)
				}
				time.Sleep(tt.sentAt - tt.claimedAt)
				before := store.total()
				w := serve(g, t.Context(), tok, "{}", created("order 1"))
				if w.Code != tt.status {
					t.Errorf("status %d, want %d: %s", w.Code, tt.status, w.Body)
				}
				if got := strings.Contains(w.Body.String(), `"unclaimed":true`); got != tt.unclaimed {
					t.Errorf("said to stand unclaimed: %v, want %v", got, tt.unclaimed)
				}
				if n := store.total() - before; n != tt.calls {
					t.Errorf("%d store calls, want %d", n, tt.calls)
				}
			})
		})
	}
}

func TestIdempotencyKeysOfTwoSubjectsStayApart(t *testing.T) {
	user := func(r *http.Request) string { return r.Header.Get("X-User") }
	g := newGuard(t, newMemstore(t), replay.Config{IdempotencyKey: true, Subject: user})
	post := func(user, key string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("{}"))
		r.Header.Set("X-User", user)
		r.Header.Set("Idempotency-Key", key)
		return r
	}
	answer(t, "A", send(g, post("A", "k"), created("for A")), 201, "for A", false)
	answer(t, "B", send(g, post("B", "k"), created("for B")), 201, "for B", false)
	answer(t, "A again, quoted", send(g, post("A", `"k"`), created("no")), 201, "for A", true)
	problemCode(t, "nobody", send(g, post("", "k"), created("no")), 403, "no-subject")
	problemCode(t, "a blank key", send(g, post("A", `""`), created("no")), 400, "missing-key")
}

func TestTokenDecidesOverABrowsersIdempotencyKey(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{Tokens: newTokens(t), IdempotencyKey: true})
	tok := newTokens(t).Issue("", "A").Value
	for i, key := range []string{`"one"`, `"another"`, `malformed"`} {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("{}"))
		r.Header.Set("X-User", "A")
		r.Header.Set("X-Submit-Token", tok)
		r.Header.Set("Idempotency-Key", key)
		answer(t, "submit with key "+key, send(g, r, created("order 1")), 201, "order 1", i > 0)
	}
}

func TestKeyFunction(t *testing.T) {
	store := &countingStore{Store: newMemstore(t)}
	g := newGuard(t, store, replay.Config{Key: func(r *http.Request) (string, error) {
		if err := r.ParseForm(); err != nil {
			return "", err
		}
		if r.PostForm.Get("type") == "bad" {
			return "", errors.New("no such type")
		}
		return r.PostForm.Get("id"), nil
	}})
	post := func(body string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return r
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		created("saw "+b.String())(w, r)
	}
	answer(t, "the first", send(g, post("id=1&type=paid"), handler), 201, "saw id=1&type=paid", false)
	answer(t, "the second", send(g, post("id=1&type=paid"), handler), 201, "saw id=1&type=paid", true)
	problemCode(t, "another amount", send(g, post("id=1&type=refund"), handler), 422, "payload-mismatch")
	before := store.total()
	problemCode(t, "no id", send(g, post("type=paid"), handler), 400, "missing-key")
	problemCode(t, "a refused type", send(g, post("id=1&type=bad"), handler), 400, "malformed-key")
	if n := store.total() - before; n != 0 {
		t.Errorf("%d store calls for requests without a key, want 0", n)
	}
}

func TestNoByteOfAClientsKeyReachesTheStore(t *testing.T) {
	store := &countingStore{Store: newMemstore(t)}
	var keys []string
	g := newGuard(t, spyStore{store, &keys}, replay.Config{IdempotencyKey: true, SharedKeys: true})
	for _, key := range []string{`"{slot}:*%0d%0a"`, strings.Repeat("k", 1000)} {
		r := httptest.NewRequest(http.MethodPost, "/orders", nil)
		r.Header.Set("Idempotency-Key", key)
		send(g, r, created("x"))
	}
	for _, key := range keys {
		if len(key) != 44 || strings.ContainsAny(key, "{}:*%") || url.QueryEscape(key) != key {
			t.Errorf("the store was given the key %q", key)
		}
	}
	if len(keys) != 2 {
		t.Errorf("%d keys, want 2", len(keys))
	}
}

func TestEncryptedRecords(t *testing.T) {
	mem := newMemstore(t)
	k1, k2 := bytes.Repeat([]byte("1"), 32), bytes.Repeat([]byte("2"), 32)
	var sealed [][]byte
	store := sealSpy{mem, &sealed}
	old := newGuard(t, store, replay.Config{EncryptionKeys: [][]byte{k1}})
	tok := freshToken(t)
	answer(t, "the first", serve(old, t.Context(), tok, "{}", created("secret")), 201, "secret", false)
	if len(sealed) != 1 || bytes.Contains(sealed[0], []byte("secret")) {
		t.Errorf("the store was given %q", sealed)
	}
	rotated := newGuard(t, store, replay.Config{EncryptionKeys: [][]byte{k2, k1}})
	answer(t, "after a rotation", serve(rotated, t.Context(), tok, "{}", created("no")), 201, "secret", true)
	for name, keys := range map[string][][]byte{"with the key dropped": {k2}, "without keys": nil} {
		g := newGuard(t, store, replay.Config{EncryptionKeys: keys})
		problemCode(t, name, serve(g, t.Context(), tok, "{}", created("no")), 500, "unreadable-record")
	}

	plainTok := freshToken(t)
	plain := newGuard(t, store, replay.Config{})
	answer(t, "before encryption", serve(plain, t.Context(), plainTok, "{}", created("plain")), 201, "plain", false)
	answer(t, "after it was switched on", serve(rotated, t.Context(), plainTok, "{}", created("no")), 201, "plain", true)
}

func TestFreshTokenPerClickIsWarnedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var log eventLog
		g := newGuard(t, newMemstore(t), replay.Config{
			Development: true, Logger: slog.New(slog.NewTextHandler(&out, nil)), Observe: log.observe,
		})
		first, second := freshToken(t), freshToken(t)
		serve(g, t.Context(), first, `{"item":"book"}`, created("1"))
		serve(g, t.Context(), freshToken(t), `{"item":"pen"}`, created("2"))
		time.Sleep(11 * time.Second)
		serve(g, t.Context(), freshToken(t), `{"item":"pen"}`, created("3"))
		if out.Len() > 0 {
			t.Fatalf("warned of nothing: %s", &out)
		}
		serve(g, t.Context(), second, `{"item":"pen"}`, created("4"))
		if !strings.Contains(out.String(), "draw a new token for each click") {
			t.Errorf("not warned: %s", &out)
		}
		if strings.Contains(out.String(), second) {
			t.Error("the token is in the log")
		}
		if !strings.Contains(log.kinds(), "fresh_token") {
			t.Errorf("events %q", log.kinds())
		}
	})
}

func TestStatus(t *testing.T) {
	store := newMemstore(t)
	g := newGuard(t, store, replay.Config{})
	ask := func(tok string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/submit-token/status", nil)
		r.Header.Set("X-Submit-Token", tok)
		w := httptest.NewRecorder()
		g.Status().ServeHTTP(w, r)
		return w
	}
	tok := freshToken(t)
	if got := ask(tok).Body.String(); got != "{\"state\":\"free\"}\n" {
		t.Errorf("before the submit: %s", got)
	}
	serve(g, t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) {
		if got := ask(tok).Body.String(); got != "{\"state\":\"pending\"}\n" {
			t.Errorf("during the submit: %s", got)
		}
	})
	w := ask(tok)
	if got := w.Body.String(); got != "{\"state\":\"done\"}\n" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("after the submit: %s, %v", got, w.Header())
	}
	problemCode(t, "a forged token", ask(strings.Repeat("A", 48)), 400, "malformed-key")
}

// Two providers number their events alike.
func TestKeysOfFunctionsAreApartByPath(t *testing.T) {
	store := newMemstore(t)
	key := func(r *http.Request) (string, error) { return r.Header.Get("X-Event"), nil }
	for _, path := range []string{"/stripe", "/github"} {
		g := newGuard(t, store, replay.Config{Key: key})
		for _, replayed := range []bool{false, true} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(path))
			r.Header.Set("X-Event", "1001")
			w := httptest.NewRecorder()
			g.Serve(w, r, created("took "+path))
			answer(t, path, w, 201, "took "+path, replayed)
		}
	}
}

func TestTimesThatNoStoreCanCountWithAreRefused(t *testing.T) {
	for field, c := range map[string]replay.Config{
		"Retention": {Tokens: newTokens(t), Retention: math.MaxInt64},
		"Lease":     {Tokens: newTokens(t), Lease: math.MaxInt64 - 1, Retention: math.MaxInt64},
	} {
		if _, err := replay.New(newMemstore(t), c); err == nil || !strings.Contains(err.Error(), "Config."+field+" is") || !strings.Contains(err.Error(), "a hundred years") {
			t.Errorf("%s: %v, want an error that names the longest", field, err)
		}
	}
}
