package replay_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/replay"
)

func TestTrailerIsSentOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   int
		before string
		again  bool
	}{
		{"set before the body, too", 10, "0", true},
		{"behind a body over the limit", 100, "", false},
	} {
		s := serveHTTP(t, replay.Config{ResponseLimit: 50}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			if c.before != "" {
				w.Header().Set("X-Sum", c.before)
			}
			_, _ = w.Write(make([]byte, c.size))
			w.Header().Set("X-Sum", "1")
		})
		tok := freshToken(t)
		for i := range 2 {
			resp, _ := post(t, s, tok, urlencoded, strings.NewReader("item=tea"))
			if got := resp.Trailer["X-Sum"]; (i == 0 || c.again) && !slices.Equal(got, []string{"1"}) {
				t.Errorf("%s, submit %d: trailer %q, want one 1", c.name, i+1, got)
			}
		}
	}
}

func TestHeadersAreDroppedHoweverTheyAreSpelt(t *testing.T) {
	s := serveHTTP(t, replay.Config{DropHeaders: []string{"X-API-Key", "X-Sum"}}, func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), http.Header{
			"X-API-Key":                  {"secret"},
			"WWW-Authenticate":           {"Basic"},
			http.TrailerPrefix + "X-Sum": {"secret"},
			"X-Kept":                     {"yes"},
		})
		w.WriteHeader(http.StatusCreated)
	})
	tok := freshToken(t)
	post(t, s, tok, urlencoded, strings.NewReader("item=tea"))
	resp, _ := post(t, s, tok, urlencoded, strings.NewReader("item=tea"))
	for _, name := range []string{"X-Api-Key", "Www-Authenticate"} {
		if v := resp.Header.Get(name); v != "" {
			t.Errorf("the replay has %s: %s", name, v)
		}
	}
	if v := resp.Trailer.Get("X-Sum"); v != "" {
		t.Errorf("the replay has the trailer X-Sum: %s", v)
	}
	if resp.Header.Get("X-Kept") != "yes" || resp.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the replay has the header %v", resp.Header)
	}
}

func TestIdentityEncodingIsReadableByAll(t *testing.T) {
	for _, coding := range []string{"identity", ""} {
		s := serveHTTP(t, replay.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			_, _ = io.WriteString(w, "plain")
		})
		tok := freshToken(t)
		for i := range 2 {
			if resp, body := post(t, s, tok, urlencoded, strings.NewReader("item=tea")); body != "plain" {
				t.Errorf("Content-Encoding %q, submit %d: got %d %q, want plain", coding, i+1, resp.StatusCode, body)
			}
		}
	}
}

func TestParameterNamesHaveNoCase(t *testing.T) {
	s := serveHTTP(t, replay.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		_, _ = io.WriteString(zw, "plain")
		_ = zw.Close()
	})
	tok := freshToken(t)
	post(t, s, tok, urlencoded, strings.NewReader("item=tea"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/orders", strings.NewReader("item=tea"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"X-Submit-Token": {tok}, "Content-Type": {urlencoded}, "Accept-Encoding": {"gzip;Q=0"}}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "plain" {
		t.Errorf("a client that refuses gzip by a capital Q got %q, want plain", body)
	}
}

func TestResponseWithAHoleIsNoOutcome(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	tok, runs := freshToken(t), 0
	for range 2 {
		serve(g, t.Context(), tok, "{}", func(w http.ResponseWriter, _ *http.Request) {
			runs++
			w.Header().Set("Content-Length", "5")
			for _, piece := range []string{"abc", "XYZ", "de"} { // net/http takes the first alone
				_, err := io.WriteString(w, piece)
				if want := piece != "abc"; (err == http.ErrContentLength) != want {
					t.Errorf("writing %q: %v", piece, err)
				}
			}
		})
	}
	if runs != 2 {
		t.Errorf("%d runs, want 2: the response was a fragment", runs)
	}
}

func TestDecodedReplayIsBounded(t *testing.T) {
	var bomb bytes.Buffer
	zw := gzip.NewWriter(&bomb)
	for range 64 {
		_, _ = zw.Write(make([]byte, 1<<20))
	}
	_ = zw.Close()
	s := serveHTTP(t, replay.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	tok := freshToken(t)
	post(t, s, tok, urlencoded, strings.NewReader("item=tea"))
	if resp, body := post(t, s, tok, urlencoded, strings.NewReader("item=tea")); resp.StatusCode != 409 || !strings.Contains(body, "response-not-kept") {
		t.Errorf("a client without gzip got %d and %d bytes, want 409 response-not-kept", resp.StatusCode, len(body))
	}
}
