package replay_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/replay"
)

type part struct{ name, file, kind, content string }

// multipartBody writes parts with a boundary of the caller's choice.
func multipartBody(t testing.TB, boundary string, parts ...part) []byte {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary(boundary); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf("form-data; name=%q", p.name)
		if p.file != "" {
			disposition += fmt.Sprintf("; filename=%q", p.file)
		}
		h.Set("Content-Disposition", disposition)
		if p.kind != "" {
			h.Set("Content-Type", p.kind)
		}
		pw, err := w.CreatePart(h)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = pw.Write([]byte(p.content))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestMultipartFingerprint(t *testing.T) {
	first := []part{{"item", "", "", "book"}, {"photo", "a.png", "image/png", "\x89PNG\x00\xff"}}
	sum := func(boundary string, parts ...part) [32]byte {
		t.Helper()
		s, _, err := replay.HashParts(multipartBody(t, boundary, parts...), boundary, "submit_token")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := sum("one", first...)
	tests := []struct {
		name  string
		parts []part
		same  bool
	}{
		{"another boundary", first, true},
		{"the token's own field", append([]part{{"submit_token", "", "", "t1"}}, first...), true},
		{"one changed file byte", []part{first[0], {"photo", "a.png", "image/png", "\x89PNG\x00\xfe"}}, false},
		{"another file name", []part{first[0], {"photo", "b.png", "image/png", "\x89PNG\x00\xff"}}, false},
		{"another type", []part{first[0], {"photo", "a.png", "image/gif", "\x89PNG\x00\xff"}}, false},
		{"another order", []part{first[1], first[0]}, false},
		{"a part more", append(append([]part{}, first...), part{"x", "", "", ""}), false},
		{"a file named as the token's field counts", append([]part{{"submit_token", "t.txt", "", "t1"}}, first...), false},
		{"content moved between fields", []part{{"item", "", "", "boo"}, {"kphoto", "a.png", "image/png", "\x89PNG\x00\xff"}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if same := sum("another-boundary", tt.parts...) == want; same != tt.same {
				t.Errorf("same fingerprint: %v, want %v", same, tt.same)
			}
		})
	}
}

func TestSpellingOfTheTargetDoesNotCount(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"/%61/%7e?q=%2Db", "/a/~?q=-b", true},
		{"/a%2fb?c=%c3%bc", "/a%2Fb?c=%C3%BC", true},
		{"/a%2Fb", "/a/b", false},
		{"/a?b=1%26c=2", "/a?b=1&c=2", false},
		{"/a?b=%2541", "/a?b=%41", false},
		{"/a?b=1&b=2", "/a?b=2&b=1", false},
	} {
		g := newGuard(t, newMemstore(t), replay.Config{})
		tok, codes := freshToken(t), [2]int{}
		for i, target := range []string{tt.a, tt.b} {
			r := httptest.NewRequest(http.MethodPost, target, nil)
			r.Header.Set("X-Submit-Token", tok)
			w := httptest.NewRecorder()
			g.Serve(w, r, created("x"))
			codes[i] = w.Code
		}
		if same := codes[1] == 201; codes[0] != 201 || same != tt.same {
			t.Errorf("%s and then %s: got %v, the same: %v", tt.a, tt.b, codes, tt.same)
		}
	}
}

func FuzzMultipartFingerprint(f *testing.F) {
	f.Add(multipartBody(f, "b", part{"a", "", "", "1"}, part{"f", "n", "text/plain", "x"}), 7)
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=submit_token\r\n\r\nt\r\n--b--"), 1)
	f.Add([]byte("--b\r\n\r\n--b--\r\nepilogue"), 3)
	f.Add([]byte("no multipart at all"), 2)
	f.Fuzz(func(t *testing.T, body []byte, n int) {
		whole, _, err := replay.HashParts(body, "b", "submit_token")
		streamed, ok := replay.StreamParts(body, max(1, n%4096), "b", "submit_token")
		if ok != (err == nil) {
			t.Fatalf("whole: %v, streamed ok: %v", err, ok)
		}
		if ok && whole != streamed {
			t.Errorf("fingerprint depends on whether the body was streamed")
		}
	})
}

// A client library draws a new boundary for each send, whatever the parts are for.
func TestEveryKindOfMultipartIsComparedByItsParts(t *testing.T) {
	const text = "--%[1]s\r\nContent-Type: application/json\r\nContent-ID: <%[2]s>\r\n\r\n{\"item\":\"%[3]s\"}\r\n--%[1]s--\r\n"
	for _, kind := range []string{"multipart/related", "multipart/mixed", "multipart/form-data"} {
		g := newGuard(t, newMemstore(t), replay.Config{})
		tok := freshToken(t)
		send := func(boundary, id, item string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(fmt.Sprintf(text, boundary, id, item)))
			r.Header.Set("Content-Type", kind+"; boundary="+boundary)
			r.Header.Set("X-Submit-Token", tok)
			w := httptest.NewRecorder()
			g.Serve(w, r, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
			return w
		}
		answer(t, kind+": first", send("one", "a", "book"), http.StatusCreated, "", false)
		answer(t, kind+": another boundary", send("two", "a", "book"), http.StatusCreated, "", true)
		for what, w := range map[string]*httptest.ResponseRecorder{
			"another content": send("one", "a", "pen"), "another id": send("one", "b", "book"),
		} {
			if w.Code != http.StatusUnprocessableEntity {
				t.Errorf("%s: %s got %d, want 422", kind, what, w.Code)
			}
		}
	}
}
