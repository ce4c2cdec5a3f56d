package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	submitgin "github.com/submitonce/submitonce/middleware/gin"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// inGin makes a handler of a native one.
func inGin(h gin.HandlerFunc) Handler {
	return func(x Exchange) error {
		h(x.Native().(*gin.Context))
		return nil
	}
}

func ginCases() []testCase {
	cases := []testCase{
		{name: "Gin: R061 no method of the writer panics", run: func(s *site) {
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(inGin(func(c *gin.Context) {
				gone := c.Writer.CloseNotify()
				if c.Writer.Written() || c.Writer.Size() != -1 || c.Writer.Status() != 200 {
					panic("a writer that has not been written to")
				}
				if p := c.Writer.Pusher(); p != nil {
					panic("a pusher without HTTP/2")
				}
				if _, _, err := c.Writer.Hijack(); !errors.Is(err, http.ErrNotSupported) {
					panic(fmt.Sprint("Hijack = ", err))
				}
				select {
				case <-gone:
					panic("the client has not gone")
				default:
				}
				c.JSON(400, gin.H{"error": "no upgrade"})
				c.Writer.Flush()
				c.Writer.WriteHeader(500) // too late
				if n, err := c.Writer.WriteString("!"); n != 1 || err != nil {
					panic(fmt.Sprint("WriteString = ", n, err))
				}
				if c.Writer.Status() != 400 || c.Writer.Size() != len(`{"error":"no upgrade"}!`) {
					panic(fmt.Sprint("state ", c.Writer.Status(), c.Writer.Size()))
				}
			}))}
			h := s.framework.Build(app)
			for _, outer := range []http.Handler{h, http.TimeoutHandler(h, time.Minute, "late"), plainWriter(h)} {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(s.Context(), "POST", "/orders", nil)
				r.Header.Set(token.HeaderName, s.token())
				outer.ServeHTTP(w, r)
				if got := w.Body.String(); w.Code != 400 || got != `{"error":"no upgrade"}!` {
					s.Errorf("answer is %d %q, want 400 with the JSON", w.Code, got)
				}
			}
		}},
		{name: "Gin: CloseNotify ends with the handler's context", run: func(s *site) {
			s.orders(inGin(func(c *gin.Context) {
				<-c.Writer.CloseNotify()
				c.Status(504)
			}), replay.Config{HandlerTimeout: 10 * time.Millisecond})
			if a := s.send(request{token: s.token()}); a.status != 504 {
				s.Errorf("answer is %d, want 504", a.status)
			}
		}},
		{name: "Gin: errors stay for the middleware outside, and are no outcome", run: func(s *site) {
			s.open(App{
				Outer: []Middleware{func(x Exchange, next func() error) error {
					_ = next()
					if c := x.Native().(*gin.Context); len(c.Errors) > 0 && !c.Writer.Written() {
						c.JSON(418, gin.H{"error": c.Errors.Last().Error()})
					}
					return nil
				}},
				Routes: s.route(inGin(func(c *gin.Context) {
					if s.runs.Load() == 1 {
						_ = c.Error(errors.New("out of tea"))
						return
					}
					_ = c.Error(errors.New("only a remark"))
					c.String(201, "ordered")
				})),
			}, replay.Config{})
			r := request{token: s.token()}
			if a := s.send(r); a.status != 418 || string(a.body) != `{"error":"out of tea"}` {
				s.Errorf("answer is %d %q, want that of the middleware outside", a.status, a.body)
			}
			first := s.send(r)
			if first.status != 201 {
				s.Errorf("second run answers %d, want 201", first.status)
			}
			s.replays(first, s.send(r))
			s.ran(2)
		}},
		{name: "Gin: status set by AbortWithError with a body from outside", run: func(s *site) {
			s.open(App{
				Outer: []Middleware{func(x Exchange, next func() error) error {
					_ = next()
					if c := x.Native().(*gin.Context); len(c.Errors) > 0 {
						c.JSON(-1, c.Errors)
					}
					return nil
				}},
				Routes: s.route(inGin(func(c *gin.Context) {
					_ = c.AbortWithError(400, errors.New("no such tea")).SetType(gin.ErrorTypePublic)
				})),
			}, replay.Config{})
			a := s.send(request{token: s.token()})
			if a.status != 400 || !strings.Contains(string(a.body), "no such tea") {
				s.Errorf("answer is %d %q, want 400 with the reason", a.status, a.body)
			}
		}},
		{name: "Gin: error beside a redirect leaves it the outcome for every client", run: func(s *site) {
			s.open(App{
				Outer: []Middleware{errorsAs500},
				Routes: s.route(inGin(func(c *gin.Context) {
					_ = c.Error(errors.New("mail not sent"))
					c.Redirect(303, "/orders/1")
				})),
			}, replay.Config{})
			r := request{token: s.token()}
			first := s.send(r)
			if first.status != 303 || first.header.Get("Location") != "/orders/1" {
				s.Errorf("answer is %d to %q, want 303 to /orders/1", first.status, first.header.Get("Location"))
			}
			s.replays(first, s.send(r))
			s.ran(1)
		}},
		{name: "Gin: error beside a chosen status of failure leaves it to Classify", run: func(s *site) {
			s.open(App{Routes: s.route(inGin(func(c *gin.Context) {
				c.Status(409)
				_ = c.Error(errors.New("out of tea"))
			}))}, replay.Config{Classify: func(status int) bool { return status < 500 }})
			r := request{token: s.token()}
			first := s.send(r)
			if first.status != 409 {
				s.Errorf("answer is %d, want 409", first.status)
			}
			s.replays(first, s.send(r))
			s.ran(1)
		}},
		{name: "Gin: R065 HandleContext to a guarded route", run: func(s *site) { handleContext(s, true) }},
		{name: "Gin: HandleContext past the guard never runs again", run: func(s *site) { handleContext(s, false) }},
		{name: "Gin: HandleContext to an unmatched path answers 404", run: func(s *site) {
			e := gin.New()
			e.Use(submitgin.Middleware(s.guard(replay.Config{})))
			e.POST("/orders", func(c *gin.Context) {
				c.Request.URL.Path = "/gone"
				e.HandleContext(c)
			})
			s.serve(e)
			if a := s.send(request{token: s.token()}); a.status != 404 || string(a.body) != "404 page not found" {
				s.Errorf("answer is %d %q, want Gin's 404", a.status, a.body)
			}
		}},
		{name: "Gin: sub-request is guarded under its own token", run: func(s *site) {
			g := s.guard(replay.Config{})
			e := gin.New()
			e.POST("/orders", submitgin.Middleware(g), func(c *gin.Context) {
				c.JSON(201, gin.H{"no": s.runs.Add(1)})
			})
			tokens := []string{s.token(), s.token()}
			e.POST("/batch", submitgin.Middleware(g), func(c *gin.Context) {
				var answers []string
				for _, tok := range tokens {
					w := subRequest(c.Request.Context(), e, tok)
					answers = append(answers, fmt.Sprint(w.Code, w.Body))
				}
				c.JSON(200, answers)
			})
			s.serve(e)
			r := request{path: "/batch", token: s.token()}
			first := s.send(r)
			if want := `["201 {\"no\":1}","201 {\"no\":2}"]`; first.status != 200 || string(first.body) != want {
				s.Errorf("batch answers %d %s, want 200 %s", first.status, first.body, want)
			}
			s.replays(first, s.send(r))
			for i, tok := range tokens {
				a := s.send(request{token: tok, body: "{}"})
				if want := fmt.Sprintf(`{"no":%d}`, i+1); string(a.body) != want || a.header.Get(replay.DefaultReplayedHeader) != "true" {
					s.Errorf("retry of order %d gets %s %v, want the replay of %s", i+1, a.body, a.header, want)
				}
			}
			s.ran(2)
		}},
		{name: "Gin: sub-request after the handler's end is guarded", run: func(s *site) {
			g := s.guard(replay.Config{})
			e := gin.New()
			var handlers context.Context
			e.POST("/orders", submitgin.Middleware(g), func(c *gin.Context) {
				if handlers == nil {
					handlers = context.WithoutCancel(c.Request.Context())
				}
				c.JSON(201, gin.H{"no": s.runs.Add(1)})
			})
			subRequest(s.Context(), e, s.token())
			for i := range 8 { // in most of them Gin uses the first one's context again
				tok := s.token()
				want := fmt.Sprintf(`{"no":%d}`, i+2)
				for range 2 {
					if w := subRequest(handlers, e, tok); w.Code != 201 || w.Body.String() != want {
						s.Errorf("order %d gets %d %q, want %s", i, w.Code, w.Body, want)
					}
				}
			}
			s.ran(9)
		}},
		{name: "Gin: status where no route or method matches is Gin's", run: func(s *site) {
			for _, custom := range []bool{false, true} {
				app := func(guards ...gin.HandlerFunc) *gin.Engine {
					e := gin.New()
					e.HandleMethodNotAllowed = true
					e.Use(guards...)
					e.POST("/orders", func(c *gin.Context) { c.Status(201) })
					if custom {
						e.NoRoute(func(c *gin.Context) { _, _ = c.Writer.WriteString("no such page") })
						e.NoMethod(func(c *gin.Context) { c.AbortWithStatus(c.Writer.Status()) })
					}
					return e
				}
				bare, guarded := app(), app(submitgin.Middleware(s.guard(replay.Config{})))
				for _, r := range []request{
					{path: "/nowhere", token: s.token()},
					{method: "PUT", token: s.token()},
				} {
					s.serve(bare)
					want := s.send(r)
					if want.status != 404 && want.status != 405 {
						s.Fatalf("bare Gin answers %d", want.status)
					}
					s.serve(guarded)
					s.same("custom "+fmt.Sprint(custom), want, s.send(r))
					s.same("its retry", want, s.send(r))
				}
			}
		}},
		{name: "Gin: 404 that is sealed keeps Gin's body", run: func(s *site) {
			e := gin.New()
			e.Use(submitgin.Middleware(s.guard(replay.Config{Classify: func(int) bool { return true }})))
			s.serve(e)
			r := request{token: s.token()}
			first := s.send(r)
			if first.status != 404 || string(first.body) != "404 page not found" {
				s.Errorf("answer is %d %q, want Gin's 404", first.status, first.body)
			}
			s.replays(first, s.send(r))
		}},
		{name: "Gin: status chosen outside stands until a handler chooses another", run: func(s *site) {
			s.open(App{
				Outer: []Middleware{inGinMiddleware(func(c *gin.Context) { c.Status(202) })},
				Routes: s.route(inGin(func(c *gin.Context) {
					if got := c.Writer.Status(); got != 202 {
						panic(fmt.Sprint("status ", got))
					}
					switch c.GetHeader("X-Want") {
					case "write":
						_, _ = c.Writer.WriteString("queued")
					case "choose":
						c.String(201, "ordered")
					}
				})),
			}, replay.Config{})
			for want, status := range map[string]int{"": 202, "write": 202, "choose": 201} {
				r := request{token: s.token(), header: http.Header{"X-Want": {want}}}
				first := s.send(r)
				if first.status != status {
					s.Errorf("%q answers %d, want %d", want, first.status, status)
				}
				s.replays(first, s.send(r))
			}
			s.ran(3)
		}},
		{name: "Gin: body that ShouldBindBodyWith has read outside is compared", run: func(s *site) {
			for _, size := range []int{1, 100_000, 600_000} { // some that the guard reads ahead, and more than it reads of what a handler has left
				pad := strings.Repeat("x", size)
				var rest []byte
				e := gin.New()
				e.Use(func(c *gin.Context) {
					var o order
					if c.ShouldBindBodyWith(&o, binding.JSON) != nil {
						c.AbortWithStatus(400)
						return
					}
					body := c.Request.Body
					c.Next()
					if c.Request.Body != body {
						s.Error("the request's body is another one after the guard")
					}
				})
				e.POST("/orders", submitgin.Middleware(s.guard(replay.Config{})), func(c *gin.Context) {
					s.runs.Add(1)
					rest, _ = io.ReadAll(c.Request.Body)
					var o order
					if err := c.ShouldBindBodyWith(&o, binding.JSON); err != nil {
						panic(err)
					}
					c.JSON(201, o.Qty)
				})
				s.serve(e)
				s.runs.Store(0)
				tok := s.token()
				one := request{token: tok, body: `{"qty":1,"note":"` + pad + `"}`}
				first := s.send(one)
				if first.status != 201 || string(first.body) != "1" || len(rest) != 0 {
					s.Errorf("%d bytes: answer %d %q, %d bytes left to read; want 201, 1 and none", size, first.status, first.body, len(rest))
				}
				s.replays(first, s.send(one))
				s.problem(s.send(request{token: tok, body: `{"qty":9,"note":"` + pad + `"}`}), 422, "payload-mismatch")
				s.ran(1)
			}
		}},
		{name: "Gin: hidden field is found in what ShouldBindBodyWith has read outside", run: func(s *site) {
			s.open(App{
				Outer: []Middleware{inGinMiddleware(func(c *gin.Context) {
					var all string
					if err := c.ShouldBindBodyWith(&all, binding.Plain); err != nil {
						panic(err)
					}
				})},
				Routes: s.route(func(x Exchange) error { return x.Text(201, "ordered") }),
			}, replay.Config{})
			tok := s.token()
			r := request{kind: formType, body: "submit_token=" + tok + "&item=tea"}
			first := s.send(r)
			if first.status != 201 {
				s.Errorf("answer is %d %q, want 201", first.status, first.body)
			}
			s.replays(first, s.send(r))
			s.problem(s.send(request{kind: formType, body: "submit_token=" + tok + "&item=rum"}), 422, "payload-mismatch")
		}},
		{name: "Gin: body that was put back after ShouldBindBodyWith is the handler's", run: func(s *site) {
			s.open(App{
				Outer: []Middleware{inGinMiddleware(func(c *gin.Context) {
					var o order
					if err := c.ShouldBindBodyWith(&o, binding.JSON); err != nil {
						panic(err)
					}
					c.Request.Body = io.NopCloser(strings.NewReader(`{"qty":2}`)) // decrypted, say
				})},
				Routes: s.route(func(x Exchange) error {
					var o order
					if err := x.Bind(&o); err != nil {
						return err
					}
					return x.JSON(201, o.Qty)
				}),
			}, replay.Config{})
			r := request{token: s.token(), kind: "application/json", body: `{"qty":1}`}
			first := s.send(r)
			if first.status != 201 || string(first.body) != "2" {
				s.Errorf("answer is %d %q, want 201 with 2", first.status, first.body)
			}
			s.replays(first, s.send(r))
		}},
		{name: "Gin: request that the guard leaves out has its body as it was", run: func(s *site) {
			s.open(App{
				Outer: []Middleware{inGinMiddleware(func(c *gin.Context) {
					var o order
					if err := c.ShouldBindBodyWith(&o, binding.JSON); err != nil {
						panic(err)
					}
				})},
				Routes: s.route(inGin(func(c *gin.Context) {
					b, err := io.ReadAll(c.Request.Body)
					c.String(201, "%d %v", len(b), err)
				})),
			}, replay.Config{Skip: func(*http.Request) bool { return true }})
			if a := s.send(request{body: `{"qty":1}`}); string(a.body) != "0 <nil>" {
				s.Errorf("handler reads %q, want nothing", a.body)
			}
		}},
		{name: "Gin: R065 two middleware values over one store", run: func(s *site) {
			g := s.guard(replay.Config{})
			e := gin.New()
			e.Use(submitgin.Middleware(g))
			e.Group("/", submitgin.Middleware(g)).POST("/orders", func(c *gin.Context) {
				s.runs.Add(1)
				c.String(201, "%s", c.FullPath())
			})
			s.serve(e)
			r := request{token: s.token()}
			first := s.send(r)
			if string(first.body) != "/orders" {
				s.Errorf("c.FullPath is %q, want /orders", first.body)
			}
			s.replays(first, s.send(r))
			s.ran(1)
		}},
	}
	for _, tt := range []struct {
		name    string
		status  int
		handler gin.HandlerFunc
	}{
		{"c.HTML", 200, func(c *gin.Context) { c.HTML(200, "page", "tea") }},
		{"c.XML", 201, func(c *gin.Context) { c.XML(201, gin.H{"item": "tea"}) }},
		{"c.AbortWithStatus", 204, func(c *gin.Context) { c.AbortWithStatus(204) }},
		{"c.Stream", 200, func(c *gin.Context) {
			n := 0
			c.Stream(func(w io.Writer) bool {
				n++
				_, _ = fmt.Fprintf(w, "line %d\n", n)
				return n < 3
			})
		}},
		{"c.SSEvent", 200, func(c *gin.Context) { c.SSEvent("message", "tea") }},
		{"c.SetCookie", 200, func(c *gin.Context) {
			c.SetCookie("a", "1", 60, "/", "", false, true)
			c.SetCookie("b", "2", 60, "/", "", false, true)
			c.Status(200)
		}},
		{"body writer that wraps c.Writer", 201, func(c *gin.Context) {
			c.Writer = struct{ gin.ResponseWriter }{c.Writer} // and does not put it back
			c.JSON(201, gin.H{"item": "tea"})
		}},
	} {
		cases = append(cases, testCase{name: "Gin: R066 " + tt.name, run: func(s *site) {
			s.answersAlike(tt.status, true, func(x Exchange) error {
				x.(*ginExchange).engine.SetHTMLTemplate(template.Must(template.New("page").Parse("<b>{{.}}</b>")))
				return inGin(tt.handler)(x)
			})
		}})
	}
	for _, tt := range []struct {
		name    string
		outcome bool
		handler gin.HandlerFunc
	}{
		{"render that fails in c.JSON", false, func(c *gin.Context) { c.JSON(200, gin.H{"item": make(chan int)}) }},
		{"render that fails in c.HTML", false, func(c *gin.Context) { c.HTML(201, "page", "tea") }},
		{"chosen 200", false, func(c *gin.Context) {
			c.Status(200)
			_ = c.Error(errors.New("out of tea"))
		}},
		{"status that was sent", true, func(c *gin.Context) {
			_ = c.Error(errors.New("mail not sent"))
			c.AbortWithStatus(204)
		}},
		{"body that was sent", true, func(c *gin.Context) {
			c.JSON(201, gin.H{"item": "tea"})
			_ = c.Error(errors.New("mail not sent"))
		}},
	} {
		cases = append(cases, testCase{name: "Gin: error beside a " + tt.name, run: func(s *site) {
			errorBeside(s, tt.outcome, tt.handler)
		}})
	}
	for i := range cases {
		cases[i].only = "gin"
	}
	return cases
}

// inGinMiddleware makes middleware of a native handler that goes on.
func inGinMiddleware(h gin.HandlerFunc) Middleware {
	return func(x Exchange, next func() error) error {
		h(x.Native().(*gin.Context))
		return next()
	}
}

// An order is what a JSON body holds.
type order struct {
	Qty int `json:"qty"`
}

// subRequest dispatches an order into e as a handler does.
func subRequest(ctx context.Context, e *gin.Engine, tok string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, "POST", "/orders", strings.NewReader("{}"))
	r.Header.Set(token.HeaderName, tok)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// errorsAs500 is the usual middleware that answers for c.Errors.
func errorsAs500(x Exchange, next func() error) error {
	_ = next()
	if c := x.Native().(*gin.Context); len(c.Errors) > 0 && !c.Writer.Written() {
		c.JSON(500, gin.H{"error": c.Errors.Last().Error()})
	}
	return nil
}

// errorBeside has h add an error to c.Errors, and compares with bare Gin.
func errorBeside(s *site, outcome bool, h gin.HandlerFunc) {
	app := App{
		Outer: []Middleware{errorsAs500},
		Routes: s.route(func(x Exchange) error {
			x.(*ginExchange).engine.SetHTMLTemplate(template.Must(template.New("page").Parse("{{.Missing}}")))
			return inGin(h)(x)
		}),
	}
	s.serve(s.framework.Build(app))
	bare := s.send(request{token: s.token()})

	s.runs.Store(0)
	s.open(app, replay.Config{Classify: func(status int) bool { return status < 500 }})
	r := request{token: s.token()}
	first := s.send(r)
	s.same("behind a guard", bare, first)
	again := s.send(r)
	if outcome {
		s.replays(first, again)
		s.ran(1)
	} else {
		s.same("retry", bare, again)
		s.ran(2)
	}
}

// handleContext has a handler send its request on to another route.
func handleContext(s *site, guarded bool) {
	g := s.guard(replay.Config{})
	e := gin.New()
	e.Use(func(c *gin.Context) { c.Header("X-Outer", "1") })
	chain := gin.HandlersChain{submitgin.Middleware(g)}
	e.POST("/orders", append(chain, func(c *gin.Context) {
		s.runs.Add(1)
		c.Header("X-First", "1")
		c.Request.URL.Path = "/v2/orders"
		e.HandleContext(c)
	})...)
	if !guarded {
		chain = nil
	}
	e.POST("/v2/orders", append(chain, func(c *gin.Context) {
		c.Header("X-Second", "2")
		c.JSON(201, gin.H{"item": "tea"})
	})...)
	s.serve(e)

	r := request{token: s.token(), body: "x"}
	first := s.send(r)
	if first.status != 201 || string(first.body) != `{"item":"tea"}` || first.header.Get("X-Second") != "2" {
		s.Errorf("answer is %d %q %v, want the second handler's", first.status, first.body, first.header)
	}
	again := s.send(r)
	s.ran(1)
	if guarded {
		s.replays(first, again)
		if first.header.Get("X-First") != "1" {
			s.Errorf("header of the first handler is lost: %v", first.header)
		}
	} else if again.status != 201 {
		s.Errorf("duplicate gets %d, want the status 201", again.status)
	}
}

// plainWriter hides every method but the three of an http.ResponseWriter.
func plainWriter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	})
}
