package adaptertest

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

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
		{name: "Gin: R065 HandleContext to a guarded route", run: func(s *site) { handleContext(s, true) }},
		{name: "Gin: HandleContext past the guard never runs again", run: func(s *site) { handleContext(s, false) }},
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
	for i := range cases {
		cases[i].only = "gin"
	}
	return cases
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
