package token_test

import (
	"encoding/json"
	"flag"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/token"
)

var update = flag.Bool("update", false, "write the browser scripts from their sources")

// browserSources are the parts of the browser client, each after those that it
// imports.
var browserSources = []string{
	"script", "settings", "content", "memory", "answers", "field", "submission", "sending", "page", "libraries", "submitonce",
}

const browserBanner = `// submitonce ` + "\u2014" + ` one submit, one outcome. MIT license.
// Made from token/browser/src, which has the comments:
// https://github.com/submitonce/submitonce
`

var (
	moduleLine  = regexp.MustCompile(`(?m)^import .*;\n`)
	exported    = regexp.MustCompile(`(?m)^export `)
	commentLine = regexp.MustCompile(`(?m)^\s*//.*\n`)
	blankLines  = regexp.MustCompile(`\n{2,}`)
)

// buildBrowser returns the two scripts that the sources make: their lines one
// after the other, without comments, imports and exports.
func buildBrowser(t *testing.T) (module, plain string) {
	t.Helper()
	var body strings.Builder
	for _, name := range browserSources {
		source, err := os.ReadFile(filepath.Join("browser", "src", name+".mjs"))
		if err != nil {
			t.Fatal(err)
		}
		text := moduleLine.ReplaceAllString(string(source), "")
		text = exported.ReplaceAllString(text, "")
		body.WriteString(commentLine.ReplaceAllString(text, ""))
	}
	text := strings.TrimSpace(blankLines.ReplaceAllString(body.String(), "\n")) + "\n"
	module = browserBanner + text + "export { submitOnce };\nexport default submitOnce;\n"
	plain = browserBanner + "(() => {\n\"use strict\";\n" +
		strings.Replace(text, "import.meta.url", "globalThis.document?.currentScript?.src", 1) +
		"globalThis.submitOnce = submitOnce;\n})();\n"
	return module, plain
}

func TestBrowserScriptsAreMadeFromTheirSources(t *testing.T) {
	sources, err := filepath.Glob("browser/src/*.mjs")
	if err != nil || len(sources) != len(browserSources) {
		t.Fatalf("%d sources, %v; %d are listed", len(sources), err, len(browserSources))
	}
	module, plain := buildBrowser(t)
	for name, want := range map[string]string{"submitonce.mjs": module, "submitonce.js": plain} {
		if *update {
			if err := os.WriteFile(filepath.Join("browser", name), []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := fs.ReadFile(token.Browser(), name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what its sources make; run: go test ./token -run TestBrowserScripts -update", name)
		}
	}
}

func TestBrowserScriptsUseNothingThatAPolicyForbids(t *testing.T) {
	module, _ := buildBrowser(t)
	// The first four need https, the others a Content-Security-Policy that is lax.
	for _, word := range []string{"randomUUID", "crypto.subtle", "navigator.locks", "serviceWorker", "eval(", "new Function", "innerHTML", ".style"} {
		if strings.Contains(module, word) {
			t.Errorf("the script uses %s", word)
		}
	}
	for _, name := range []string{token.HeaderName, token.FieldName} {
		if !strings.Contains(module, `"`+name+`"`) {
			t.Errorf("the script does not know %s", name)
		}
	}
}

func TestBrowserScriptIsServedByPath(t *testing.T) {
	module, plain := buildBrowser(t)
	h := token.BrowserScript()
	get := func(url, etag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", url, nil)
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	etags := map[string]bool{}
	for url, want := range map[string]string{"/submitonce.js": plain, "/assets/once.mjs": module} {
		w := get(url, "")
		if w.Code != 200 || w.Body.String() != want || w.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
			t.Errorf("%s: %d, %s, %d bytes; want the %d of the script", url, w.Code, w.Header().Get("Content-Type"), w.Body.Len(), len(want))
		}
		if got := w.Header().Get("Cache-Control"); got != "public, max-age=3600" {
			t.Errorf("%s: Cache-Control %q", url, got)
		}
		etag := w.Header().Get("ETag")
		etags[etag] = true
		if w := get(url, etag); w.Code != 304 || w.Body.Len() != 0 {
			t.Errorf("%s again: %d with %d bytes, want 304", url, w.Code, w.Body.Len())
		}
		if w := get(url, `"old"`); w.Code != 200 {
			t.Errorf("%s with an old ETag: %d", url, w.Code)
		}
	}
	if len(etags) != 2 || etags[""] {
		t.Errorf("ETags %v, want two", etags)
	}
	for _, url := range []string{"/", "/submitonce", "/submitonce.ts", "/x.json"} {
		if w := get(url, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", url, w.Code)
		}
	}
}

func TestBrowserIsAnNPMPackage(t *testing.T) {
	text, err := fs.ReadFile(token.Browser(), "package.json")
	if err != nil {
		t.Fatal(err)
	}
	var pkg struct {
		Name, Types, Module string
		Exports             map[string]any
		Files               []string
		Dependencies        map[string]string
	}
	if err := json.Unmarshal(text, &pkg); err != nil {
		t.Fatal(err)
	}
	if pkg.Name != "submitonce" || pkg.Exports["."] == nil || len(pkg.Dependencies) != 0 {
		t.Errorf("package.json: %s", text)
	}
	for _, name := range append(pkg.Files, pkg.Types, pkg.Module) {
		if _, err := fs.Stat(token.Browser(), path.Clean(name)); err != nil {
			t.Errorf("package.json names %s: %v", name, err)
		}
	}
	types, err := fs.ReadFile(token.Browser(), path.Clean(pkg.Types))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"configure", "form", "fetch", "send", "renew", "ready"} {
		if !strings.Contains(string(types), name) {
			t.Errorf("the types say nothing of %s", name)
		}
	}
}
