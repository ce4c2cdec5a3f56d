package compat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixge/httpsnoop"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

// wrappers put a response writer of their own before the handler's.
func wrappers() map[string]func(http.Handler) http.Handler {
	return map[string]func(http.Handler) http.Handler{
		"nothing": func(next http.Handler) http.Handler { return next },
		"httpsnoop": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { httpsnoop.CaptureMetrics(next, w, r) })
		},
		"otelhttp": func(next http.Handler) http.Handler {
			return otelhttp.NewHandler(next, "shop", otelhttp.WithTracerProvider(sdktrace.NewTracerProvider()),
				otelhttp.WithMessageEvents(otelhttp.ReadEvents, otelhttp.WriteEvents))
		},
		"chi's logger": middleware.RequestLogger(newFormatter(io.Discard)),
		"all of them": func(next http.Handler) http.Handler {
			return otelhttp.NewHandler(middleware.RequestLogger(newFormatter(io.Discard))(http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) { httpsnoop.CaptureMetrics(next, w, r) })), "shop")
		},
	}
}

// orderWithEverything uses all that a response writer may have.
func (s *shop) orderWithEverything(w http.ResponseWriter, _ *http.Request) {
	n := s.run()
	if _, ok := w.(http.Flusher); !ok {
		s.Errorf("%T has no Flush", w)
	}
	rc := http.NewResponseController(w)
	for name, err := range map[string]error{
		"SetReadDeadline":  rc.SetReadDeadline(time.Now().Add(patience)),
		"SetWriteDeadline": rc.SetWriteDeadline(time.Now().Add(patience)),
		"EnableFullDuplex": rc.EnableFullDuplex(),
	} {
		if err != nil {
			s.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := rc.Hijack(); !errors.Is(err, http.ErrNotSupported) {
		s.Errorf("Hijack: %v, want ErrNotSupported", err)
	}
	w.Header().Set("X-Order", fmt.Sprint(n))
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusCreated)
	if err := rc.Flush(); err != nil {
		s.Errorf("Flush: %v", err)
	}
	if _, err := io.Copy(w, strings.NewReader(fmt.Sprintf("order %d: ", n))); err != nil {
		s.Errorf("Copy: %v", err)
	}
	if _, err := io.WriteString(w, strings.Repeat("tea ", 1000)); err != nil {
		s.Errorf("WriteString: %v", err)
	}
}

func TestResponseWritersKeepTheirMethods(t *testing.T) {
	for name, wrap := range wrappers() {
		t.Run(name+" outside", func(t *testing.T) {
			s := newShop(t)
			s.serve(wrap(s.once(http.HandlerFunc(s.orderWithEverything))))
			s.runsOnce(request{path: "/orders", body: "item=tea"}, 201, "order %d: "+strings.Repeat("tea ", 1000))
		})
		t.Run(name+" inside", func(t *testing.T) {
			s := newShop(t)
			s.serve(s.once(wrap(http.HandlerFunc(s.orderWithEverything))))
			s.runsOnce(request{path: "/orders", body: "item=tea"}, 201, "order %d: "+strings.Repeat("tea ", 1000))
		})
	}
}

// A request that Config.Skip leaves out is streamed through all of them.
func TestSkippedStreamsFlushAtOnce(t *testing.T) {
	for name, wrap := range wrappers() {
		t.Run(name, func(t *testing.T) {
			store, err := memstore.New(memstore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			s := newShopOn(t, store, replay.Config{Skip: func(r *http.Request) bool { return r.URL.Path == "/events" }})
			seen := make(chan struct{})
			s.serve(wrap(s.once(wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "data: 1\n")
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Errorf("Flush: %v", err)
				}
				select {
				case <-seen:
				case <-time.After(patience):
					t.Error("the client has not seen the first event")
				}
				fmt.Fprint(w, "data: 2\n")
			})))))
			resp, err := s.client.Post(s.url+"/events", "text/plain", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			lines := bufio.NewReader(resp.Body)
			if line, err := lines.ReadString('\n'); err != nil || line != "data: 1\n" {
				t.Errorf("first event is %q, %v", line, err)
			}
			close(seen)
			if line, err := lines.ReadString('\n'); err != nil || line != "data: 2\n" {
				t.Errorf("second event is %q, %v", line, err)
			}
		})
	}
}

func TestHTTPSnoopOutsideMeasuresWhatWasSent(t *testing.T) {
	s := newShop(t)
	var mu sync.Mutex
	var seen []httpsnoop.Metrics // guarded by mu
	h := s.once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := s.run()
		if n == 1 {
			http.Error(w, "no tea left", http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", n)
	}))
	s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := httpsnoop.CaptureMetrics(h, w, r)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, m)
	}))
	r := request{path: "/orders", token: s.token()}
	s.answers(r, 422, "no tea left\n")
	s.answers(r, 201, "order 2")
	s.answers(r, 201, "order 2")
	read := func() []httpsnoop.Metrics {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
	s.until("three measurements", func() bool { return len(read()) == 3 })
	for i, want := range []httpsnoop.Metrics{{Code: 422, Written: 12}, {Code: 201, Written: 7}, {Code: 201, Written: 7}} {
		if got := read()[i]; got.Code != want.Code || got.Written != want.Written {
			t.Errorf("request %d: %d, %d bytes; want %d, %d", i, got.Code, got.Written, want.Code, want.Written)
		}
	}
}

// Each request has a span of its own, and what the handler does hangs below the
// span of the request that ran it.
func TestOtelHTTPOutsideTracesEachRequest(t *testing.T) {
	s := newShop(t)
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	app := http.NewServeMux()
	app.Handle("POST /carts/{cart}/orders", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := s.run()
		if !trace.SpanFromContext(r.Context()).IsRecording() {
			t.Error("the handler's context has no span that records")
		}
		_, span := provider.Tracer("shop").Start(r.Context(), "INSERT orders")
		span.End()
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", n)
	}))
	s.serve(otelhttp.NewHandler(s.once(app), "shop", otelhttp.WithTracerProvider(provider)))
	s.runsOnce(request{path: "/carts/7/orders"}, 201, "order %d")

	s.until("eight spans", func() bool { return len(spans.Ended()) == 8 })
	servers := map[trace.SpanID]sdktrace.ReadOnlySpan{}
	for _, span := range spans.Ended() {
		if span.SpanKind() != trace.SpanKindServer {
			continue
		}
		servers[span.SpanContext().SpanID()] = span
		for _, kv := range span.Attributes() {
			if kv.Key == "http.response.status_code" && kv.Value.AsInt64() != 201 {
				t.Errorf("a request's span has status %d", kv.Value.AsInt64())
			}
		}
	}
	if len(servers) != 6 {
		t.Errorf("%d spans of requests, want 6", len(servers))
	}
	named := 0
	for _, span := range spans.Ended() {
		if span.Name() != "INSERT orders" {
			continue
		}
		server, ok := servers[span.Parent().SpanID()]
		if !ok {
			t.Error("the handler's span hangs below none of the requests")
			continue
		}
		if strings.Contains(server.Name(), "/carts/{cart}/orders") {
			named++
		}
	}
	if named != 2 {
		t.Errorf("%d runs hang below a span that is named after the route, want 2; spans: %v", named, names(spans))
	}
}

func names(spans *tracetest.SpanRecorder) (names []string) {
	for _, span := range spans.Ended() {
		names = append(names, span.Name())
	}
	return names
}

// The handler may go on after its client has hung up, and its span does, too.
func TestOtelHTTPSpanOutlivesTheClient(t *testing.T) {
	s := newShop(t)
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	goOn := make(chan struct{})
	s.serve(otelhttp.NewHandler(s.once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := s.run()
		<-goOn
		if err := r.Context().Err(); err != nil || !trace.SpanFromContext(r.Context()).IsRecording() {
			t.Errorf("context: %v, span records: %v", err, trace.SpanFromContext(r.Context()).IsRecording())
		}
		fmt.Fprintf(w, "order %d", n)
	})), "shop", otelhttp.WithTracerProvider(provider)))
	r := request{path: "/orders", token: s.token()}
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		req, _ := http.NewRequestWithContext(ctx, "POST", s.url+r.path, nil)
		req.Header.Set("X-Submit-Token", r.token)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if resp, err := s.client.Do(req); err == nil {
			t.Error("the first client got an answer")
			resp.Body.Close()
		}
	}()
	s.until("the run", func() bool { return s.runs.Load() == 1 })
	hangUp()
	<-gone
	close(goOn)
	if a := s.answers(r, 200, "order 1"); !a.replayed() {
		t.Error("the retry is not marked as a replay")
	}
	s.ran(1)
}
