// Package submitecho5 runs a [replay.Guard] as middleware of Echo v5: a handler
// behind it runs once per submit token, and every duplicate gets the first
// response. For Echo v4, whose contexts are of another type, there is
// middleware/echo.
//
//	import submitecho5 "github.com/submitonce/submitonce/middleware/echo5"
//
//	guard, err := replay.New(store, replay.Config{Tokens: issuer})
//	...
//	e := echo.New()
//	e.Use(middleware.Recover(), middleware.RequestID()) // outside the guard
//	e.GET("/submit-token", echo.WrapHandler(issuer.Handler()))
//	e.POST("/orders", createOrder, submitecho5.Middleware(guard))
//
// Put it behind authentication, CORS, request ids and compression, so that each
// duplicate passes them again, and before whatever does the work once. Handlers
// use c as ever; [replay.Key], [replay.Attempt], [replay.Seal] and
// [replay.Release] take c.Request().Context().
//
// What is particular to Echo:
//
//   - An error that the handler returns is rendered by the HTTPErrorHandler at
//     once, inside the guard, because what that answers is the outcome. The error
//     is still returned, for the loggers and transactions outside; an error
//     handler finds the response committed then and has nothing more to do.
//     Middleware that turns errors into other responses belongs inside the guard.
//   - Before and After functions of middleware outside run for each duplicate;
//     those that were registered inside ran with the handler, and what they added
//     to the header is part of the response.
//   - Mount this instead of echo.WrapMiddleware over the net/http middleware: with
//     that, Echo renders errors outside the guard, which then has no answer to keep.
package submitecho5
