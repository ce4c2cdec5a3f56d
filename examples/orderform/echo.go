package main

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	submitecho "github.com/submitonce/submitonce/middleware/echo"
)

func (s *shop) echo() http.Handler {
	read := []string{http.MethodGet, http.MethodHead} // net/http takes HEAD where GET is
	e := echo.New()
	e.Use(middleware.Recover())
	e.Match(read, "/", echo.WrapHandler(http.HandlerFunc(s.page)))
	e.Match(read, "/submit-token", echo.WrapHandler(s.tokens.Handler()))
	e.Match(read, "/submit-token/status", echo.WrapHandler(s.guard.Status()))
	e.POST("/orders", func(c echo.Context) error {
		return sendEcho(c, s.create(c.Response(), c.Request()))
	}, submitecho.Middleware(s.guard))
	e.Match(read, "/orders", func(c echo.Context) error { return sendEcho(c, s.list(c.Request())) })
	e.Match(read, "/orders/:no", func(c echo.Context) error { return sendEcho(c, s.show(c.Request(), c.Param("no"))) })
	return e
}

func sendEcho(c echo.Context, p reply) error {
	if p.location != "" {
		c.Response().Header().Set(echo.HeaderLocation, p.location)
	}
	if p.media == "" {
		return c.NoContent(p.status)
	}
	return c.Blob(p.status, p.media, p.body)
}
