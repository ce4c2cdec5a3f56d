// Package submitgin runs a [replay.Guard] as Gin middleware: a handler behind it
// runs once per submit token, and every duplicate gets the first response.
//
//	import submitgin "github.com/submitonce/submitonce/middleware/gin"
//
//	guard, err := replay.New(store, replay.Config{Tokens: issuer})
//	...
//	r := gin.Default() // its logger and recovery stand outside the guard
//	r.GET("/submit-token", gin.WrapH(issuer.Handler()))
//	r.POST("/orders", submitgin.Middleware(guard), createOrder)
//
// Put it behind authentication, CORS, request ids and compression, so that each
// duplicate passes them again, and before whatever does the work once. Handlers
// use c as ever. Pass c.Request.Context() on, and not c: only the former carries
// the handler's deadline and what [replay.Key], [replay.Attempt], [replay.Seal]
// and [replay.Release] need.
//
// What is particular to Gin:
//
//   - The status begins as what c.Writer has: 404 or 405 where no route matches.
//     One that was set without a body, as by c.Status(204), is the outcome, unless
//     an error was added to c.Errors.
//   - Errors stay in c.Errors for the middleware outside. A handler that adds one
//     and writes nothing, because it has failed or because its answer could not be
//     rendered, leaves the answer to that middleware: there is no outcome, and the
//     key is released. A status from 300 on that it has chosen stands, though:
//     a redirect is the outcome, and Classify decides about a failure.
//   - The chain is aborted where the handler did not run; middleware outside goes
//     on after its c.Next and finds the replay's status and size in c.Writer.
//   - A body that middleware outside has read by c.ShouldBindBodyWith is compared
//     as if it were still there, and handlers find it where they would without
//     the guard.
//   - After gin.Engine.HandleContext the answer is still captured if the new route
//     stands behind the guard, too. Otherwise Gin sends it past the guard, and a
//     duplicate gets its status alone. A sub-request is none of this: one that a
//     handler dispatches by gin.Engine.ServeHTTP is guarded under its own token,
//     and writes to its own writer.
package submitgin
