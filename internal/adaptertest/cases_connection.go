package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
					return fmt.Errorf("hijacked with %w, want ErrNotSupported", err)
				}
				if _, _, err := http.NewResponseController(x.Writer()).Hijack(); !errors.Is(err, http.ErrNotSupported) {
					return fmt.Errorf("hijacked by ResponseController with %w, want ErrNotSupported", err)
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
		{name: "HTTP/2 makes no difference", run: func(s *site) {
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(func(x Exchange) error {
				w := x.Writer()
				w.Header().Set("Trailer", "X-Sum")
				w.Header().Set("X-Protocol", x.Request().Proto)
				_, _ = io.WriteString(w, "ordered")
				w.(http.Flusher).Flush()
				w.Header().Set("X-Sum", "abc")
				return nil
			})}
			server := httptest.NewUnstartedServer(s.framework.Build(app))
			server.EnableHTTP2 = true
			server.StartTLS()
			s.Cleanup(server.Close)
			s.url, s.client = server.URL, server.Client()
			r := request{token: s.token(), stream: strings.NewReader("a body without length")}
			first := s.send(r)
			if first.header.Get("X-Protocol") != "HTTP/2.0" || first.trailer.Get("X-Sum") != "abc" {
				s.Errorf("answer is by %s with trailers %v, want HTTP/2.0 with X-Sum", first.header.Get("X-Protocol"), first.trailer)
			}
			r.stream = strings.NewReader("a body without length")
			s.replays(first, s.send(r))
			s.ran(1)
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
