package adaptertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// Each of these handlers answers without a guard, behind one, and, where that
// seals, as a replay. All have to look the same.
func answerCases() []testCase {
	tests := []struct {
		name    string
		status  int // 0: whatever the framework makes of it
		sealed  bool
		handler Handler
	}{
		{"C40 R031 status, headers and body replay equal", 201, true, func(x Exchange) error {
			for name, value := range map[string]string{
				"Location": "/orders/1", "ETag": `"v1"`, "Content-Language": "en", "X-App-Id": "7",
				"Link": "</orders/1>; rel=self",
			} {
				x.SetHeader(name, value)
			}
			return x.JSON(201, map[string]any{"order_no": 1, "item": "tea"})
		}},
		{"R037 201 with a type of its own", 201, true, func(x Exchange) error {
			return x.Blob(201, "text/csv", []byte("a,b\n1,2\n"))
		}},
		{"R037 empty 202", 202, true, func(x Exchange) error { return x.NoContent(202) }},
		{"C40 C50 204 has no body", 204, true, func(x Exchange) error { return x.NoContent(204) }},
		{"R037 206 with its range", 206, true, func(x Exchange) error {
			x.SetHeader("Content-Range", "bytes 0-3/10")
			return x.Blob(206, "application/octet-stream", []byte("0123"))
		}},
		{"C50 R113 303 keeps its Location", 303, true, func(x Exchange) error { return x.Redirect(303, "/orders/1") }},
		{"307 keeps its Location", 307, true, func(x Exchange) error { return x.Redirect(307, "/other?a=b") }},
		{"R038 304 has no body", 304, true, func(x Exchange) error {
			x.SetHeader("ETag", `"v1"`)
			return x.NoContent(304)
		}},
		{"R039 every byte value", 200, true, func(x Exchange) error {
			b := []byte("\xff\xfe\x00\xed\xa0\x80")
			for i := range 256 {
				b = append(b, byte(i))
			}
			return x.Blob(200, "application/octet-stream", b)
		}},
		{"C41 several Set-Cookie in order", 200, true, func(x Exchange) error {
			for _, name := range []string{"z", "a", "m", "a"} {
				http.SetCookie(x.Writer(), &http.Cookie{
					Name: name, Value: "1", Expires: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
				})
			}
			return x.Text(200, "welcome")
		}},
		{"header with several values", 200, true, func(x Exchange) error {
			x.Writer().Header().Add("Link", "</a>; rel=prev, </b>; rel=next")
			x.Writer().Header().Add("Link", "</c>; rel=last")
			return x.Text(200, "page")
		}},
		{"R111 htmx headers", 200, true, func(x Exchange) error {
			x.SetHeader("HX-Redirect", "/orders/1")
			x.SetHeader("HX-Trigger", `{"ordered":1}`)
			return x.NoContent(200)
		}},
		{"R101 confirmation page", 200, true, func(x Exchange) error {
			return x.Blob(200, "text/html; charset=utf-8", []byte("<h1>Thank you</h1>"))
		}},
		{"R010 handler that answers nothing", 200, true, func(Exchange) error { return nil }},
		{"C46 Write before WriteHeader", 200, true, func(x Exchange) error {
			_, err := x.Writer().Write([]byte("straight on"))
			return err
		}},
		{"C46 C47 R048 late header and second status", 200, true, func(x Exchange) error {
			w := x.Writer()
			_, _ = w.Write([]byte("a"))
			w.Header().Set("X-Late", "1")
			w.WriteHeader(500)
			_, err := w.Write([]byte("b"))
			return err
		}},
		{"C46 Write after 204", 204, true, func(x Exchange) error {
			x.Writer().WriteHeader(204)
			if _, err := x.Writer().Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
				return fmt.Errorf("Write after 204 = %w, want ErrBodyNotAllowed", err)
			}
			return nil
		}},
		{"R066 io.WriteString", 200, true, func(x Exchange) error {
			_, err := io.WriteString(x.Writer(), "as a string")
			return err
		}},
		{"R066 reader", 200, true, func(x Exchange) error {
			return x.Reader(200, "text/plain", strings.NewReader("from a reader"))
		}},
		{"C03 R045 ServeContent", 200, true, func(x Exchange) error {
			http.ServeContent(x.Writer(), x.Request(), "a.txt", time.Unix(1e9, 0), strings.NewReader("content"))
			return nil
		}},
		{"C03 R045 io.Copy of 5 MB", 200, true, func(x Exchange) error {
			_, err := io.Copy(x.Writer(), bytes.NewReader(bytes.Repeat([]byte("0123456789"), 500_000)))
			return err
		}},
		{"C45 R053 declared Content-Length", 200, true, func(x Exchange) error {
			x.SetHeader("Content-Length", "5")
			return x.Text(200, "12345")
		}},
		{"R047 trailers", 200, true, func(x Exchange) error {
			w := x.Writer()
			w.Header().Set("Trailer", "X-Sum")
			_, _ = w.Write([]byte("body"))
			w.Header().Set("X-Sum", "abc")
			w.Header().Set(http.TrailerPrefix+"X-Undeclared", "def")
			return nil
		}},
		{"R037 no Content-Type", 200, true, func(x Exchange) error {
			x.Writer().Header()["Content-Type"] = nil
			_, err := x.Writer().Write([]byte("<p>not sniffed"))
			return err
		}},
		{"sniffed Content-Type", 200, true, func(x Exchange) error {
			_, err := x.Writer().Write([]byte("<html><body>sniffed"))
			return err
		}},
		{"C48 R069 Flush between writes", 200, true, func(x Exchange) error {
			x.SetHeader("Content-Type", "text/plain")
			for _, s := range []string{"one ", "two "} {
				_, _ = io.WriteString(x.Writer(), s)
				x.Writer().(http.Flusher).Flush()
				if err := http.NewResponseController(x.Writer()).Flush(); err != nil {
					return err
				}
			}
			return nil
		}},
		{"C47 Flush sends the header as it is", 200, true, func(x Exchange) error {
			x.SetHeader("Content-Type", "text/plain")
			x.Writer().(http.Flusher).Flush()
			x.Writer().Header().Set("X-Late", "1")
			x.Writer().WriteHeader(500)
			_, err := x.Writer().Write([]byte("body"))
			return err
		}},
		{"C07 C50 R067 the framework's own error", 0, false, func(x Exchange) error { return x.Refuse(404, "no such item") }},
		{"C50 R067 a plain error", 500, false, func(Exchange) error { return errors.New("database away") }},
		{"R067 a wrapped error", 0, false, func(x Exchange) error {
			if err := x.Refuse(404, "no such item"); err != nil {
				return fmt.Errorf("order: %w", err)
			}
			return nil
		}},
		{"R010 http.Error", 400, false, func(x Exchange) error {
			http.Error(x.Writer(), "not so", 400)
			return nil
		}},
		{"C31 R013 validation error", 422, false, func(x Exchange) error {
			return x.JSON(422, map[string]string{"quantity": "at least 1"})
		}},
		{"C52 R017 500", 500, false, func(x Exchange) error { return x.Text(500, "broken") }},
		{"R015 error that the handler calls final", 409, true, func(x Exchange) error {
			replay.Seal(x.Request().Context())
			return x.JSON(409, map[string]string{"error": "slot taken"})
		}},
		{"R015 returned error that the handler calls final", 0, true, func(x Exchange) error {
			replay.Seal(x.Request().Context())
			return x.Refuse(409, "slot taken")
		}},
		{"C77 form with red fields as 200", 200, false, func(x Exchange) error {
			replay.Release(x.Request().Context())
			return x.Blob(200, "text/html", []byte("<form>quantity: at least 1</form>"))
		}},
		{"C78 R120 login redirect", 302, false, func(x Exchange) error {
			replay.Release(x.Request().Context())
			return x.Redirect(302, "/login")
		}},
	}
	var cases []testCase
	for _, tt := range tests {
		cases = append(cases, testCase{name: tt.name, run: func(s *site) {
			s.answersAlike(tt.status, tt.sealed, tt.handler)
		}})
	}
	return append(cases, testCase{name: "C03 R066 file", run: func(s *site) {
		path := filepath.Join(s.TempDir(), "receipt.txt")
		if err := os.WriteFile(path, []byte("one tea\n"), 0o600); err != nil {
			s.Fatal(err)
		}
		s.answersAlike(200, true, func(x Exchange) error { return x.ServeFile(path) })
	}}, testCase{name: "C36 R017 Classify decides what seals", run: func(s *site) {
		s.orders(func(x Exchange) error { return x.Text(422, "no") }, replay.Config{
			Classify: func(status int) bool { return status < 500 },
		})
		r := request{token: s.token()}
		s.replays(s.send(r), s.send(r))
		s.ran(1)
	}}, testCase{name: "R041 response that stops short is no outcome", run: func(s *site) {
		s.orders(func(x Exchange) error {
			if s.runs.Load() == 1 {
				x.SetHeader("Content-Length", "1000")
			}
			return x.Text(200, strings.Repeat("x", 400))
		}, replay.Config{})
		r := request{token: s.token()}
		if a, err := s.try(r); err == nil {
			s.Errorf("fragment came as a complete answer: %d, %d bytes", a.status, len(a.body))
		}
		first := s.send(r)
		if first.status != 200 || len(first.body) != 400 {
			s.Errorf("second run answers %d with %d bytes, want 200 with 400", first.status, len(first.body))
		}
		s.replays(first, s.send(r))
		s.ran(2)
	}}, testCase{name: "C43 R049 response over the limit", run: func(s *site) {
		const size = 300_000
		s.orders(func(x Exchange) error {
			x.SetHeader("Location", "/orders/1")
			return x.Blob(201, "text/plain", bytes.Repeat([]byte("x"), size))
		}, replay.Config{ResponseLimit: 1000})
		r := request{token: s.token()}
		if first := s.send(r); first.status != 201 || len(first.body) != size {
			s.Errorf("first client gets %d with %d bytes, want 201 with %d", first.status, len(first.body), size)
		}
		again := s.send(r)
		s.problem(again, 409, "response-not-kept")
		for _, part := range []string{`"first_status":201`, `"location":"/orders/1"`} {
			if !strings.Contains(string(again.body), part) {
				s.Errorf("problem is %s, want %s in it", again.body, part)
			}
		}
		s.ran(1)
	}})
}

// answersAlike compares the three answers of h. A status of 0 stands for
// whatever the framework makes of it.
func (s *site) answersAlike(status int, sealed bool, h Handler) {
	s.Helper()
	app := App{Routes: s.route(h)}
	s.serve(s.framework.Build(app))
	bare := s.send(request{token: s.token(), body: "x"})
	if status != 0 && bare.status != status {
		s.Fatalf("bare handler answers %d, want %d", bare.status, status)
	}

	s.open(app, replay.Config{ResponseLimit: 8 << 20})
	r := request{token: s.token(), body: "x"}
	first := s.send(r)
	s.same("first answer behind a guard", bare, first)
	again := s.send(r)
	if !sealed {
		s.same("answer after a release", bare, again)
		s.ran(3)
		return
	}
	s.replays(first, again)
	s.replays(first, s.send(r)) // and the marker does not add up
	s.ran(2)
}
