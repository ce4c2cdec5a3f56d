package token

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed browser/package.json browser/submitonce.d.ts browser/submitonce.js browser/submitonce.mjs
var browserFiles embed.FS

// Browser returns the browser client as an npm package: submitonce.mjs, an ES
// module; submitonce.js, the same for a plain script element, which makes the
// global submitOnce; submitonce.d.ts, the types of both, which say what the
// client does; and package.json. Take it for a bundler or a CDN of your own.
func Browser() fs.FS {
	files, err := fs.Sub(browserFiles, "browser")
	if err != nil {
		panic(err) // the name is valid, and nothing else can fail
	}
	return files
}

// BrowserScript returns a handler that serves the browser client: the ES module
// to a path that ends in .mjs, the plain script to one that ends in .js, 404 to
// others.
//
//	mux.Handle("GET /submitonce.js", token.BrowserScript())
//
//	<script src="/submitonce.js"></script>
//	<form method="post" action="/orders" data-submit-once="checkout"> ... </form>
//
// In the page's head and without defer, it holds back a submit that comes before
// the page has loaded. Browsers keep it for an hour and then ask by its ETag, a
// hash of the content, whether there is a newer one.
func BrowserScript() http.Handler {
	module, plain := newScript("browser/submitonce.mjs"), newScript("browser/submitonce.js")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path.Ext(r.URL.Path) {
		case ".mjs":
			module.serve(w, r)
		case ".js":
			plain.serve(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

type script struct {
	content []byte
	etag    string
}

func newScript(name string) script {
	content, err := browserFiles.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	sum := sha256.Sum256(content)
	return script{content, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

func (s script) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=3600")
	h.Set("ETag", s.etag)
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
}
