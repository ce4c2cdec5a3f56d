// Package adaptertest holds every adapter to one behaviour: it sends the same
// requests to the same small apps, each written in its framework's own manner,
// and wants the same answers, over whatever store it is given. [Run] is the whole
// of it. The cases stand in the files cases_*.go, by topic.
package adaptertest

import (
	"io"
	"net/http"

	"github.com/submitonce/submitonce/replay"
)

// A Framework builds apps natively.
type Framework struct {
	Name  string
	Build func(App) http.Handler
}

// An App is what a Framework builds. Requests pass, from outside to inside:
// Outer, recovery if RecoverOutside, the guards, recovery if RecoverInside,
// Inner, the route's handler.
type App struct {
	Guards         []*replay.Guard // usually one; none makes the app bare
	Mount          Mount
	Outer, Inner   []Middleware
	RecoverOutside bool // by the framework's own middleware
	RecoverInside  bool
	Routes         []Route
}

// A Mount says where the guards stand in the app.
type Mount int

const (
	OnRoute  Mount = iota // on each single route
	OnGroup               // on a group that holds the routes
	OnEngine              // on the whole engine or mux
)

// A Route is one endpoint. Its path may hold {name} for a path value.
type Route struct {
	Method, Path string
	Handler      Handler
}

// A Handler answers through its Exchange. A returned error is the framework's to
// answer: Echo's error handler, Gin's AbortWithError, http.Error.
type Handler func(x Exchange) error

// A Middleware goes on by next, which returns the handler's error where the
// framework has such a thing.
type Middleware func(x Exchange, next func() error) error

// An Exchange is one request and its response in the framework's own terms.
type Exchange interface {
	Request() *http.Request
	SetHeader(name, value string) // through the framework's context
	Writer() http.ResponseWriter  // what the framework hands to a plain http.Handler

	// What came in, parsed by the framework's own functions.
	Param(name string) string
	Form(name string) string
	File(name string) (fileName, content string, err error)
	Bind(v any) error

	// The framework's own ways to answer.
	JSON(status int, v any) error
	Text(status int, s string) error
	Blob(status int, contentType string, b []byte) error
	Reader(status int, contentType string, r io.Reader) error
	ServeFile(path string) error
	NoContent(status int) error
	Redirect(status int, location string) error
	Refuse(status int, message string) error // the framework's idiom for an error status

	// What middleware outside can read after next: net/http has a recorder in
	// front for it.
	State() State

	// Native returns the framework's own context, for what only one has.
	Native() any
}

// A State is what a framework says of the response.
type State struct {
	Status    int
	Size      int64
	Committed bool
}
