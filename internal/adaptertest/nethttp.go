package adaptertest

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/submitonce/submitonce/middleware/nethttp"
)

// NetHTTP builds apps on http.ServeMux.
func NetHTTP() Framework { return Framework{Name: "nethttp", Build: buildNetHTTP} }

func buildNetHTTP(a App) http.Handler {
	guarded := func(h http.Handler) http.Handler {
		if a.RecoverInside {
			h = recoverer(h)
		}
		for _, g := range a.Guards {
			h = nethttp.Middleware(g)(h)
		}
		return h
	}
	mux := http.NewServeMux()
	for _, r := range a.Routes {
		h := std(r.Handler)
		for i := len(a.Inner) - 1; i >= 0; i-- {
			h = stdMiddleware(a.Inner[i], h)
		}
		if a.Mount == OnRoute {
			h = guarded(h)
		}
		mux.Handle(r.Method+" "+r.Path, h)
	}
	h := http.Handler(mux)
	switch a.Mount {
	case OnEngine:
		h = guarded(h)
	case OnGroup: // a mux below a mux
		outer := http.NewServeMux()
		outer.Handle("/", guarded(h))
		h = outer
	}
	if a.RecoverOutside {
		h = recoverer(h)
	}
	for i := len(a.Outer) - 1; i >= 0; i-- {
		h = stdMiddleware(a.Outer[i], h)
	}
	if len(a.Outer) > 0 {
		next := h
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&recorder{ResponseWriter: w}, r)
		})
	}
	return h
}

func std(h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(&stdExchange{w, r}); err != nil {
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		}
	})
}

func stdMiddleware(m Middleware, next http.Handler) http.Handler {
	return std(func(x Exchange) error {
		return m(x, func() error {
			next.ServeHTTP(x.Writer(), x.Request())
			return nil
		})
	})
}

// recoverer is the usual dozen lines that net/http leaves to its users.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// A recorder is what loggers put in front of the guard.
type recorder struct {
	http.ResponseWriter
	state State
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if status >= 200 && !w.state.Committed {
		w.state.Status, w.state.Committed = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if !w.state.Committed {
		w.state.Status, w.state.Committed = http.StatusOK, true
	}
	n, err := w.ResponseWriter.Write(b)
	w.state.Size += int64(n)
	return n, err
}

type stdExchange struct {
	w http.ResponseWriter
	r *http.Request
}

func (x *stdExchange) Native() any                   { return nil }
func (x *stdExchange) Request() *http.Request        { return x.r }
func (x *stdExchange) Writer() http.ResponseWriter   { return x.w }
func (x *stdExchange) SetHeader(name, value string)  { x.w.Header().Set(name, value) }
func (x *stdExchange) Param(name string) string      { return x.r.PathValue(name) }
func (x *stdExchange) Form(name string) string       { return x.r.PostFormValue(name) }
func (x *stdExchange) Bind(v any) error              { return json.NewDecoder(x.r.Body).Decode(v) }
func (x *stdExchange) Text(code int, s string) error { return x.Blob(code, "text/plain", []byte(s)) }

func (x *stdExchange) State() State {
	if w, ok := x.w.(*recorder); ok {
		return w.state
	}
	return State{}
}

func (x *stdExchange) File(name string) (fileName, content string, err error) {
	f, h, err := x.r.FormFile(name)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return h.Filename, string(b), err
}

func (x *stdExchange) JSON(status int, v any) error {
	x.SetHeader("Content-Type", "application/json")
	x.w.WriteHeader(status)
	return json.NewEncoder(x.w).Encode(v)
}

func (x *stdExchange) Blob(status int, contentType string, b []byte) error {
	x.SetHeader("Content-Type", contentType)
	x.w.WriteHeader(status)
	_, err := x.w.Write(b)
	return err
}

func (x *stdExchange) Reader(status int, contentType string, r io.Reader) error {
	x.SetHeader("Content-Type", contentType)
	x.w.WriteHeader(status)
	_, err := io.Copy(x.w, r)
	return err
}

func (x *stdExchange) ServeFile(path string) error {
	http.ServeFile(x.w, x.r, path)
	return nil
}

func (x *stdExchange) NoContent(status int) error {
	x.w.WriteHeader(status)
	return nil
}

func (x *stdExchange) Redirect(status int, location string) error {
	http.Redirect(x.w, x.r, location, status)
	return nil
}

func (x *stdExchange) Refuse(status int, message string) error {
	http.Error(x.w, message, status)
	return nil
}
