package adaptertest

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

func connectionCases() []testCase {
	return []testCase{
		{name: "C05 outcome is stored before the client is answered", run: func(s *site) {
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{})
			s.send(request{token: s.token()})
			if n := s.store.seals.Load(); n != 1 {
				s.Errorf("%d outcomes were stored when the answer came, want 1", n)
			}
		}},
		{name: "C05 nothing of the answer goes out before the seal", run: func(s *site) {
			sealing, proceed := make(chan struct{}), make(chan struct{})
			s.store.seal = func() error {
				close(sealing)
				<-proceed
				return nil
			}
			s.orders(func(x Exchange) error {
				_, _ = io.WriteString(x.Writer(), strings.Repeat("x", 100_000))
				x.Writer().(http.Flusher).Flush()
				return nil
			}, replay.Config{StoreTimeout: time.Minute})
			var early sync.Once
			got := make(chan string, 1)
			ctx := httptrace.WithClientTrace(s.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() {
				early.Do(func() {
					select {
					case <-proceed:
						got <- ""
					default:
						got <- "before"
					}
				})
			}})
			res := s.sent(request{token: s.token(), ctx: ctx})
			<-sealing
			close(proceed)
			if when := <-got; when != "" {
				s.Errorf("first byte came %s the seal", when)
			}
			<-res
		}},
		{name: "C46 103 goes out at once and is not the response", run: func(s *site) {
			g := newGate(s)
			s.orders(func(x Exchange) error {
				w := bareWriter(x.Writer())
				w.Header().Set("Link", "</style.css>; rel=preload")
				w.WriteHeader(103)
				w.Header().Del("Link")
				g.hold()
				return x.Text(201, "ordered")
			}, replay.Config{})
			early := make(chan string, 1)
			r := request{token: s.token(), body: "x"}
			traced := r
			traced.ctx = httptrace.WithClientTrace(s.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
					early <- fmt.Sprint(code, " ", h.Get("Link"))
					return nil
				},
			})
			res := s.sent(traced)
			<-g.entered
			s.until("the informational response", func() bool { return len(early) > 0 })
			if got, want := <-early, "103 </style.css>; rel=preload"; got != want {
				s.Errorf("informational response is %q, want %q", got, want)
			}
			close(g.open)
			first := <-res
			if first.status != 201 || first.header.Get("Link") != "" {
				s.Errorf("response is %d with Link %q, want 201 without", first.status, first.header.Get("Link"))
			}
			s.replays(first.answer, s.send(r))
		}},
		{name: "R038 connection stays in step after answers without body", run: func(s *site) {
			for _, status := range []int{204, 304} {
				s.orders(func(x Exchange) error { return x.NoContent(status) }, replay.Config{})
				r := request{token: s.token()}
				for range 3 {
					a := s.send(r)
					if a.status != status || len(a.body) != 0 || a.header.Get("Content-Type") != "" || a.length > 0 {
						s.Errorf("answer is %d with %d bytes, type %q, length %d; want a bare %d",
							a.status, len(a.body), a.header.Get("Content-Type"), a.length, status)
					}
				}
				if text := s.serverLog.String(); text != "" {
					s.Errorf("server logs %q, want nothing", text)
				}
			}
		}},
		{name: "C48 R054 R061 refused Hijack leaves the answer to the handler", run: func(s *site) {
			s.orders(func(x Exchange) error {
				h, ok := x.Writer().(http.Hijacker)
				if !ok {
					return errors.New("the framework's writer is no Hijacker")
				}
				if _, _, err := h.Hijack(); !errors.Is(err, http.ErrNotSupported) {
					return fmt.Errorf("Hijack = %w, want ErrNotSupported", err)
				}
				if _, _, err := http.NewResponseController(x.Writer()).Hijack(); !errors.Is(err, http.ErrNotSupported) {
					return fmt.Errorf("ResponseController.Hijack = %w, want ErrNotSupported", err)
				}
				replay.Seal(x.Request().Context())
				return x.JSON(400, map[string]string{"error": "no upgrade here"})
			}, replay.Config{})
			r := request{token: s.token(), header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}}
			first := s.send(r)
			if first.status != 400 {
				s.Errorf("answer is %d %q, want 400", first.status, first.body)
			}
			s.replays(first, s.send(r))
			s.ran(1)
		}},
		{name: "C48 R043 deadlines and full duplex reach the connection", run: func(s *site) {
			s.orders(func(x Exchange) error {
				rc := http.NewResponseController(x.Writer())
				far := time.Now().Add(time.Hour)
				if err := errors.Join(
					rc.SetReadDeadline(far), rc.SetWriteDeadline(far), rc.EnableFullDuplex(),
				); err != nil {
					return err
				}
				return errors.Join(x.Text(201, "ordered"), rc.Flush())
			}, replay.Config{})
			r := request{token: s.token()}
			if first := s.send(r); first.status != 201 {
				s.Errorf("answer is %d %q, want 201", first.status, first.body)
			}
		}},
		{name: "C49 R055 http.TimeoutHandler outside", run: func(s *site) {
			g := newGate(s)
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(func(x Exchange) error {
				g.hold()
				x.SetHeader("X-Order", "1")
				return x.Text(201, "ordered")
			})}
			h := s.framework.Build(app)
			s.serve(http.TimeoutHandler(h, 50*time.Millisecond, "late"))
			r := request{token: s.token(), body: "x"}
			if a := s.send(r); a.status != 503 || string(a.body) != "late" {
				s.Errorf("slow handler answers %d %q, want 503 late", a.status, a.body)
			}
			close(g.open)
			s.until("the seal", func() bool { return s.store.seals.Load() == 1 })
			again := s.send(r)
			if again.status != 201 || again.header.Get("X-Order") != "1" ||
				again.header.Get(replay.DefaultReplayedHeader) != "true" {
				s.Errorf("retry answers %d %v, want a replay of the 201", again.status, again.header)
			}
			s.ran(1)
		}},
		{name: "C49 http.TimeoutHandler inside", run: func(s *site) {
			var slow sync.WaitGroup
			s.orders(func(x Exchange) error {
				first := s.runs.Load() == 1
				http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if first {
						slow.Add(1)
						defer slow.Done()
						<-r.Context().Done()
						_, _ = io.Copy(io.Discard, r.Body) // it still reads when the answer has been given
					}
					w.Header().Set("X-Order", "1")
					w.WriteHeader(201)
					_, _ = io.WriteString(w, "ordered")
				}), 20*time.Millisecond, "late").ServeHTTP(x.Writer(), x.Request())
				return nil
			}, replay.Config{})
			r := request{token: s.token(), body: strings.Repeat("x", 200_000)}
			if a := s.send(r); a.status != 503 || string(a.body) != "late" {
				s.Errorf("slow handler answers %d %q, want 503 late", a.status, a.body)
			}
			slow.Wait()
			first := s.send(r)
			if first.status != 201 || first.header.Get("X-Order") != "1" {
				s.Errorf("second run answers %d %v, want 201", first.status, first.header)
			}
			s.replays(first, s.send(r))
			s.ran(2)
		}},
		{name: "HandlerTimeout ends the handler's context", run: func(s *site) {
			s.orders(func(x Exchange) error {
				<-x.Request().Context().Done()
				return x.Text(504, "took too long")
			}, replay.Config{HandlerTimeout: 20 * time.Millisecond})
			if a := s.send(request{token: s.token()}); a.status != 504 {
				s.Errorf("answer is %d, want the handler's 504", a.status)
			}
		}},
		{name: "handler's context keeps values and carries key and attempt", run: func(s *site) {
			type name struct{}
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(func(x Exchange) error {
				ctx := x.Request().Context()
				return x.JSON(201, []any{ctx.Value(name{}), len(replay.Key(ctx)) > 20, replay.Attempt(ctx)})
			})}
			h := s.framework.Build(app)
			s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), name{}, "ann")))
			}))
			if a := s.send(request{token: s.token()}); strings.TrimSpace(string(a.body)) != `["ann",true,1]` {
				s.Errorf("handler sees %s", a.body)
			}
		}},
		{name: "C44 R051 gzip outside", run: func(s *site) {
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(func(x Exchange) error {
				return x.Text(200, strings.Repeat("readable ", 1000))
			})}
			h := s.framework.Build(app)
			s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { zipped(w, r, h) }))
			s.readableForAll(request{token: s.token(), body: "x"})
		}},
		{name: "C44 R051 gzip inside", run: func(s *site) {
			s.orders(func(x Exchange) error {
				zipped(x.Writer(), x.Request(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/plain; charset=utf-8")
					_, _ = io.WriteString(w, strings.Repeat("readable ", 1000))
				}))
				return nil
			}, replay.Config{})
			s.readableForAll(request{token: s.token(), body: "x"})
		}},
		{name: "C44 unknown coding inside is not sent to a client that cannot read it", run: func(s *site) {
			s.orders(func(x Exchange) error {
				x.SetHeader("Content-Encoding", "br")
				return x.Blob(200, "text/plain", []byte("not really brotli"))
			}, replay.Config{})
			r := request{token: s.token(), header: http.Header{"Accept-Encoding": {"br"}}}
			first := s.send(r)
			s.replays(first, s.send(r))
			r.header = http.Header{"Accept-Encoding": {"gzip"}}
			s.problem(s.send(r), 409, "response-not-kept")
			s.ran(1)
		}},
		{name: "Skip leaves a live answer out", run: func(s *site) {
			g := newGate(s)
			s.orders(func(x Exchange) error {
				x.SetHeader("Content-Type", "text/event-stream")
				_, _ = io.WriteString(x.Writer(), "data: 1\n\n")
				x.Writer().(http.Flusher).Flush()
				g.hold()
				return nil
			}, replay.Config{Skip: func(r *http.Request) bool { return r.Header.Get("Accept") == "text/event-stream" }})
			req, err := http.NewRequestWithContext(s.Context(), "POST", s.url+"/orders", nil)
			if err != nil {
				s.Fatal(err)
			}
			req.Header.Set("Accept", "text/event-stream")
			resp, err := s.client.Do(req) // comes while the handler still runs
			if err != nil {
				s.Fatal(err)
			}
			defer resp.Body.Close()
			b := make([]byte, 9)
			if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != "data: 1\n\n" {
				s.Errorf("first event is %q (%v)", b, err)
			}
			close(g.open)
		}},
		{name: "R126 graceful shutdown stores the outcome", run: func(s *site) {
			g := newGate(s)
			s.orders(func(x Exchange) error {
				g.hold()
				return x.Text(201, "ordered")
			}, replay.Config{})
			res := s.sent(request{token: s.token()})
			<-g.entered
			down := make(chan error, 1)
			go func() { down <- s.server.Config.Shutdown(context.WithoutCancel(s.Context())) }()
			close(g.open)
			if err := <-down; err != nil {
				s.Error(err)
			}
			if n := s.store.seals.Load(); n != 1 {
				s.Errorf("%d outcomes were stored after the shutdown, want 1", n)
			}
			if a := <-res; a.err != nil || a.status != 201 {
				s.Errorf("client gets %d (%v), want 201", a.status, a.err)
			}
		}},
		{name: "R115 client that sends again by itself", run: func(s *site) {
			g := newGate(s)
			s.orders(func(x Exchange) error {
				g.hold()
				return x.Text(201, "ordered")
			}, replay.Config{})
			r := request{token: s.token(), body: "x"}
			for range 3 { // each gives up and sends again
				ctx, cancel := context.WithTimeout(s.Context(), 30*time.Millisecond)
				impatient := r
				impatient.ctx = ctx
				_, err := s.try(impatient)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					s.Errorf("impatient client: %v, want its own timeout", err)
				}
			}
			close(g.open)
			if a := s.send(r); a.status != 201 || string(a.body) != "ordered" {
				s.Errorf("last attempt answers %d %q, want 201 ordered", a.status, a.body)
			}
			s.ran(1)
		}},
		{name: "R036 headers for CORS are listed", run: func(s *site) {
			for _, want := range []string{token.HeaderName, "Idempotency-Key"} {
				if got := strings.Join(replay.CORSAllowHeaders(), " "); !strings.Contains(got, want) {
					s.Errorf("CORSAllowHeaders = %s, want %s in it", got, want)
				}
			}
			if got := strings.Join(replay.CORSExposeHeaders(), " "); !strings.Contains(got, replay.DefaultReplayedHeader) {
				s.Errorf("CORSExposeHeaders = %s, want %s in it", got, replay.DefaultReplayedHeader)
			}
		}},
	}
}

// bareWriter follows Unwrap to the guard's writer, past those that keep a
// status to themselves.
func bareWriter(w http.ResponseWriter) http.ResponseWriter {
	for {
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = u.Unwrap()
	}
}

// readableForAll sends r from a client that reads gzip, and then from one that
// does not.
func (s *site) readableForAll(r request) {
	s.Helper()
	want := strings.Repeat("readable ", 1000)
	for _, accepted := range []string{"gzip", "gzip", "identity"} {
		r.header = http.Header{"Accept-Encoding": {accepted}}
		a := s.send(r)
		body := string(a.body)
		if coding := a.header.Get("Content-Encoding"); coding != "" {
			zr, err := gzip.NewReader(strings.NewReader(body))
			if coding != accepted || err != nil {
				s.Fatalf("client that accepts %s gets %s (%v)", accepted, coding, err)
			}
			b, err := io.ReadAll(zr)
			if err != nil {
				s.Fatal(err)
			}
			body = string(b)
		}
		if body != want || a.header.Get("Vary") != "Accept-Encoding" {
			s.Errorf("client that accepts %s gets %d bytes with Vary %q, want the %d readable ones",
				accepted, len(body), a.header.Get("Vary"), len(want))
		}
		if a.length >= 0 && a.length != int64(len(a.body)) {
			s.Errorf("Content-Length is %d for %d bytes", a.length, len(a.body))
		}
	}
	s.ran(1)
}

// zipped is a small compression middleware.
func zipped(w http.ResponseWriter, r *http.Request, next http.Handler) {
	w.Header().Add("Vary", "Accept-Encoding")
	if r.Header.Get("Accept-Encoding") != "gzip" {
		next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	zw := gzip.NewWriter(w)
	defer zw.Close()
	next.ServeHTTP(zipWriter{w, zw}, r)
}

type zipWriter struct {
	http.ResponseWriter
	zw *gzip.Writer
}

func (w zipWriter) WriteHeader(status int) {
	w.Header().Del("Content-Length") // no longer true
	w.ResponseWriter.WriteHeader(status)
}

func (w zipWriter) Write(b []byte) (int, error) { return w.zw.Write(b) }
