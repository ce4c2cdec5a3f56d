package adaptertest

import (
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	submitgin "github.com/submitonce/submitonce/middleware/gin"
)

// Gin builds apps on gin.Engine.
func Gin() Framework { return Framework{Name: "gin", Build: buildGin} }

func buildGin(a App) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	for _, m := range a.Outer {
		e.Use(ginMiddleware(m))
	}
	if a.RecoverOutside {
		e.Use(gin.RecoveryWithWriter(io.Discard))
	}
	var guards, inner gin.HandlersChain
	for _, g := range a.Guards {
		guards = append(guards, submitgin.Middleware(g))
	}
	if a.RecoverInside {
		inner = append(inner, gin.RecoveryWithWriter(io.Discard))
	}
	for _, m := range a.Inner {
		inner = append(inner, ginMiddleware(m))
	}
	group := e.Group("/")
	switch a.Mount {
	case OnEngine:
		e.Use(guards...)
		group = e.Group("/")
		guards = nil
	case OnGroup:
		group.Use(guards...)
		guards = nil
	}
	for _, r := range a.Routes {
		chain := append(append(gin.HandlersChain{}, guards...), inner...)
		chain = append(chain, func(c *gin.Context) { ginAnswer(c, r.Handler(&ginExchange{e, c})) })
		group.Handle(r.Method, colons(r.Path), chain...)
	}
	return e
}

// colons writes {name} as :name, as Gin and Echo do.
func colons(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

func ginMiddleware(m Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		ginAnswer(c, m(&ginExchange{nil, c}, func() error {
			c.Next()
			return nil
		}))
	}
}

func ginAnswer(c *gin.Context, err error) {
	if err != nil {
		_ = c.AbortWithError(http.StatusInternalServerError, err)
	}
}

type ginExchange struct {
	engine *gin.Engine
	c      *gin.Context
}

func (x *ginExchange) Native() any                  { return x.c }
func (x *ginExchange) Request() *http.Request       { return x.c.Request }
func (x *ginExchange) Writer() http.ResponseWriter  { return x.c.Writer }
func (x *ginExchange) SetHeader(name, value string) { x.c.Header(name, value) }
func (x *ginExchange) Param(name string) string     { return x.c.Param(name) }
func (x *ginExchange) Form(name string) string      { return x.c.PostForm(name) }
func (x *ginExchange) Bind(v any) error             { return x.c.ShouldBind(v) }

func (x *ginExchange) State() State {
	w := x.c.Writer
	return State{Status: w.Status(), Size: int64(max(w.Size(), 0)), Committed: w.Written()}
}

func (x *ginExchange) File(name string) (fileName, content string, err error) {
	h, err := x.c.FormFile(name)
	if err != nil {
		return "", "", err
	}
	f, err := h.Open()
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return h.Filename, string(b), err
}

func (x *ginExchange) JSON(status int, v any) error {
	x.c.JSON(status, v)
	return nil
}

func (x *ginExchange) Text(status int, s string) error {
	x.c.String(status, "%s", s)
	return nil
}

func (x *ginExchange) Blob(status int, contentType string, b []byte) error {
	x.c.Data(status, contentType, b)
	return nil
}

func (x *ginExchange) Reader(status int, contentType string, r io.Reader) error {
	x.c.DataFromReader(status, -1, contentType, r, nil)
	return nil
}

func (x *ginExchange) ServeFile(path string) error {
	x.c.File(path)
	return nil
}

func (x *ginExchange) NoContent(status int) error {
	x.c.Status(status) // and no more: Gin sends it when the chain has ended
	return nil
}

func (x *ginExchange) Redirect(status int, location string) error {
	x.c.Redirect(status, location)
	return nil
}

func (x *ginExchange) Refuse(status int, message string) error {
	x.c.AbortWithStatusJSON(status, gin.H{"message": message})
	return nil
}
