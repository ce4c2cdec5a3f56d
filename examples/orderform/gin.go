package main

import (
	"net/http"

	"github.com/gin-gonic/gin"

	submitgin "github.com/submitonce/submitonce/middleware/gin"
)

func (s *shop) gin() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	read := []string{http.MethodGet, http.MethodHead} // net/http takes HEAD where GET is
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.Use(gin.Recovery())
	router.Match(read, "/", gin.WrapF(s.page))
	router.Match(read, "/submit-token", gin.WrapH(s.tokens.Handler()))
	router.Match(read, "/submit-token/status", gin.WrapH(s.guard.Status()))
	router.POST("/orders", submitgin.Middleware(s.guard), func(c *gin.Context) {
		sendGin(c, s.create(c.Writer, c.Request))
	})
	router.Match(read, "/orders", func(c *gin.Context) { sendGin(c, s.list(c.Request)) })
	router.Match(read, "/orders/:no", func(c *gin.Context) { sendGin(c, s.show(c.Request, c.Param("no"))) })
	return router
}

func sendGin(c *gin.Context, p reply) {
	if p.location != "" {
		c.Header("Location", p.location)
	}
	if p.media == "" {
		c.Status(p.status)
		return
	}
	c.Data(p.status, p.media, p.body)
}
