package adaptertest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"sync/atomic"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// parts builds a multipart body with a boundary of its own.
func parts(boundary string, fields [][2]string, fileName, content string) (kind, body string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary(boundary)
	for _, f := range fields {
		_ = w.WriteField(f[0], f[1])
	}
	if fileName != "" {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", fmt.Sprintf(`form-data; name="photo"; filename=%q`, fileName))
		h.Set("Content-Type", "image/png")
		p, _ := w.CreatePart(h)
		_, _ = io.WriteString(p, content)
	}
	_ = w.Close()
	return w.FormDataContentType(), b.String()
}

func bodyCases() []testCase {
	return []testCase{
		{name: "C30 R026 another amount under the same token", run: func(s *site) {
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{})
			r := request{token: s.token(), kind: jsonType, body: `{"quantity":1}`}
			changed := r
			changed.body = `{"quantity":9}`
			first := s.send(r)
			s.problem(s.send(changed), 422, "payload-mismatch")
			s.replays(first, s.send(r))
			s.ran(1)
		}},
		{name: "C31 R013 corrected form runs under the same token", run: func(s *site) {
			s.orders(func(x Exchange) error {
				if x.Form("otp") == "0000" {
					return x.Refuse(400, "wrong code")
				}
				return x.Text(200, "welcome")
			}, replay.Config{})
			r := request{token: s.token(), kind: formType, body: "otp=0000"}
			if a := s.send(r); a.status != 400 {
				s.Fatalf("wrong code answers %d, want 400", a.status)
			}
			r.body = "otp=1234"
			first := s.send(r)
			if string(first.body) != "welcome" {
				s.Errorf("right code answers %d %q, want welcome", first.status, first.body)
			}
			s.replays(first, s.send(r))
			s.ran(2)
		}},
		{name: "C32 R025 multipart with a new boundary", run: func(s *site) {
			s.orders(func(x Exchange) error {
				name, content, err := x.File("photo")
				if err != nil {
					return err
				}
				return x.Text(201, x.Form("item")+" "+name+" "+content)
			}, replay.Config{})
			for _, inField := range []bool{false, true} {
				tok, fields := s.token(), [][2]string{{"item", "tea"}}
				r := request{token: tok}
				if inField {
					r.token, fields = "", append(fields, [2]string{token.FieldName, tok})
				}
				send := func(boundary, name, content string) answer {
					r.kind, r.body = parts(boundary, fields, name, content)
					return s.send(r)
				}
				first := send("aaaa", "a.png", "\x89PNG\x00")
				if string(first.body) != "tea a.png \x89PNG\x00" {
					s.Errorf("handler sees %q", first.body)
				}
				s.replays(first, send("bbbbbbbb", "a.png", "\x89PNG\x00"))
				s.problem(send("aaaa", "a.png", "\x89PNG\x01"), 422, "payload-mismatch")
				s.problem(send("aaaa", "b.png", "\x89PNG\x00"), 422, "payload-mismatch")
			}
			s.ran(2)
		}},
		{name: "R025 part headers in another order", run: func(s *site) {
			s.orders(func(x Exchange) error { return x.Text(201, x.Form("item")) }, replay.Config{})
			r := request{token: s.token(), kind: "multipart/form-data; boundary=b"}
			const disposition, kind = "Content-Disposition: form-data; name=\"item\"\r\n", "Content-Type: text/plain\r\n"
			r.body = "--b\r\n" + disposition + kind + "\r\ntea\r\n--b--\r\n"
			first := s.send(r)
			r.body = "--b\r\n" + kind + disposition + "\r\ntea\r\n--b--\r\n"
			s.replays(first, s.send(r))
			s.ran(1)
		}},
		{name: "C32 large upload is compared as it streams by", run: func(s *site) {
			s.orders(func(x Exchange) error {
				_, content, err := x.File("photo")
				if err != nil {
					return err
				}
				return x.Text(201, fmt.Sprintf("%x", sha256.Sum256([]byte(content))))
			}, replay.Config{})
			content := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
			r := request{token: s.token()}
			send := func(boundary, content string) answer {
				kind, body := parts(boundary, [][2]string{{"item", "tea"}}, "a.png", content)
				r.kind, r.stream = kind, strings.NewReader(body)
				return s.send(r)
			}
			first := send("aaaa", content)
			if want := fmt.Sprintf("%x", sha256.Sum256([]byte(content))); string(first.body) != want {
				s.Errorf("handler sees content of sum %s, want %s", first.body, want)
			}
			s.replays(first, send("bbbbbbbb", content))
			s.problem(send("aaaa", content[:len(content)-1]+"X"), 422, "payload-mismatch")
			s.ran(1)
		}},
		{name: "C35 handler that reads a part of the body", run: func(s *site) {
			s.orders(func(x Exchange) error {
				b := make([]byte, 10)
				_, err := io.ReadFull(x.Request().Body, b)
				if err != nil {
					return err
				}
				return x.Text(201, string(b))
			}, replay.Config{})
			for _, size := range []int{100, 200_000, 2_000_000} {
				r := request{token: s.token(), body: strings.Repeat("0123456789", size/10)}
				first := s.send(r)
				if string(first.body) != "0123456789" {
					s.Errorf("%d bytes: handler sees %q", size, first.body)
				}
				s.replays(first, s.send(r))
			}
			s.ran(3)
		}},
		{name: "C35 handler that reads nothing of a small body", run: func(s *site) {
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{})
			r := request{token: s.token(), body: "quantity=1"}
			first := s.send(r)
			s.replays(first, s.send(r))
			r.body = "quantity=9"
			s.problem(s.send(r), 422, "payload-mismatch")
			s.ran(1)
		}},
		{name: "C33 body is closed, and read twice only once", run: func(s *site) {
			s.orders(func(x Exchange) error {
				body := x.Request().Body
				b, err := io.ReadAll(body)
				if err != nil {
					return err
				}
				rest, err := io.ReadAll(body)
				if err != nil || len(rest) != 0 {
					return fmt.Errorf("second read: %q, %w", rest, err)
				}
				if err := body.Close(); err != nil {
					return err
				}
				return x.Text(201, fmt.Sprintf("%s %d", b, x.Request().ContentLength))
			}, replay.Config{})
			r := request{token: s.token(), body: "hello"}
			first := s.send(r)
			if string(first.body) != "hello 5" {
				s.Errorf("handler sees %q, want %q", first.body, "hello 5")
			}
			s.replays(first, s.send(r))
			r = request{token: s.token(), stream: strings.NewReader("hello")}
			if a := s.send(r); string(a.body) != "hello -1" {
				s.Errorf("handler sees %q of a chunked body, want %q", a.body, "hello -1")
			}
		}},
		{name: "C33 Expect: 100-continue", run: func(s *site) {
			s.orders(func(x Exchange) error {
				b, err := io.ReadAll(x.Request().Body)
				if err != nil {
					return err
				}
				return x.Text(201, fmt.Sprint(len(b)))
			}, replay.Config{})
			for _, size := range []int{10, 300_000} {
				r := request{
					token: s.token(), body: strings.Repeat("x", size), header: http.Header{"Expect": {"100-continue"}},
				}
				first := s.send(r)
				if string(first.body) != fmt.Sprint(size) {
					s.Errorf("handler sees %s bytes, want %d", first.body, size)
				}
				s.replays(first, s.send(r))
			}
			s.ran(2)
		}},
		{name: "R029 upload that is cut off leaves no trace", run: cutOff},
		{name: "C49 http.MaxBytesReader outside", run: func(s *site) {
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(func(x Exchange) error {
				_, err := io.ReadAll(x.Request().Body)
				var tooLarge *http.MaxBytesError
				if errors.As(err, &tooLarge) {
					return x.Text(413, fmt.Sprint("limit ", tooLarge.Limit))
				}
				return x.Text(201, "ordered")
			})}
			h := s.framework.Build(app)
			s.serve(http.MaxBytesHandler(h, 1000))
			r := request{token: s.token(), body: strings.Repeat("x", 1001)}
			for range 2 {
				if a := s.send(r); a.status != 413 {
					s.Errorf("body over the limit answers %d %q, want 413", a.status, a.body)
				}
			}
			r.body = r.body[:1000]
			s.replays(s.send(r), s.send(r))
		}},
		{name: "form that outer middleware has parsed", run: func(s *site) {
			s.open(App{
				Outer: []Middleware{func(x Exchange, next func() error) error {
					_ = x.Form("csrf") // as checks of CSRF fields do
					return next()
				}},
				Routes: s.route(func(x Exchange) error { return x.Text(201, x.Form("item")) }),
			}, replay.Config{})
			tok := s.token()
			r := request{kind: formType, body: "csrf=1&item=tea&" + token.FieldName + "=" + tok}
			first := s.send(r)
			if first.status != 201 || string(first.body) != "tea" {
				s.Errorf("form answers %d %q, want 201 tea", first.status, first.body)
			}
			s.replays(first, s.send(r))
			r.body = strings.Replace(r.body, "tea", "milk", 1)
			s.problem(s.send(r), 422, "payload-mismatch")
			r = request{kind: formType, body: "csrf=1&item=tea", token: s.token()}
			s.replays(s.send(r), s.send(r))
			r.body = "csrf=1&item=milk"
			s.problem(s.send(r), 422, "payload-mismatch")
			s.ran(2)
		}},
		{name: "no goroutine stays behind an upload", alone: true, run: func(s *site) {
			before := goroutines()
			var how atomic.Value
			h := func(x Exchange) error {
				switch how.Load() {
				case "reads a little":
					_, _ = io.ReadFull(x.Request().Body, make([]byte, 70_000))
				case "panics":
					_, _ = io.ReadFull(x.Request().Body, make([]byte, 70_000))
					panic("a bug")
				case "refuses":
					return x.Refuse(400, "no")
				}
				return x.Text(201, "ordered")
			}
			g := s.guard(replay.Config{})
			s.open(App{RecoverOutside: true, Guards: []*replay.Guard{g, g}, Routes: s.route(h)}, replay.Config{})
			for _, way := range []string{"reads nothing", "reads a little", "panics", "refuses"} {
				how.Store(way)
				r := request{token: s.token()}
				for range 2 {
					r.kind, r.body = parts("aaaa", nil, "a.png", strings.Repeat("x", 400_000))
					_, _ = s.try(r) // a server may cut off what nobody reads
				}
			}
			s.server.Close()
			s.orders(h, replay.Config{FormLimit: 1000, Key: func(r *http.Request) (string, error) {
				_, err := io.ReadFull(r.Body, make([]byte, 2000))
				return "k", err
			}})
			r := request{}
			r.kind, r.body = parts("aaaa", nil, "a.png", strings.Repeat("x", 400_000))
			_, _ = s.try(r)
			s.server.Close()
			s.endsAll(before)
		}},
		{name: "files of a parsed upload are removed", run: func(s *site) {
			s.Setenv("TMPDIR", s.TempDir())
			s.orders(func(x Exchange) error {
				if err := x.Request().ParseMultipartForm(1); err != nil {
					return err
				}
				entries, err := os.ReadDir(os.TempDir())
				if err != nil || len(entries) == 0 {
					return fmt.Errorf("no file was made: %w", err)
				}
				return x.Text(201, "kept")
			}, replay.Config{})
			r := request{token: s.token()}
			r.kind, r.body = parts("aaaa", nil, "a.png", strings.Repeat("x", 11<<20))
			if a := s.send(r); a.status != 201 {
				s.Fatalf("upload answers %d %q, want 201", a.status, a.body)
			}
			s.until("the file to go", func() bool {
				entries, err := os.ReadDir(os.TempDir())
				return err == nil && len(entries) == 0
			})
		}, alone: true},
	}
}
