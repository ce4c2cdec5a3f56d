package token_test

import (
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/token"
)

var hiddenField = regexp.MustCompile(`<input type="hidden" name="submit_token" value="([A-Za-z0-9_-]{48})" autocomplete="off">`)

func fieldValue(t *testing.T, page string) string {
	t.Helper()
	found := hiddenField.FindAllStringSubmatch(page, -1)
	if len(found) != 1 {
		t.Fatalf("%d hidden fields in %q, want 1", len(found), page)
	}
	return found[0][1]
}

func requestOf(user string) *http.Request {
	r := httptest.NewRequest("GET", "/checkout", nil)
	r.Header.Set("X-User", user)
	return r
}

func TestFieldHoldsATokenOfTheRequestsSubject(t *testing.T) {
	iss := newIssuerWith(t, oneKey(t), token.Config{Subject: userHeader})
	for _, instance := range []bool{false, true} {
		w := httptest.NewRecorder()
		w.Header().Set("Cache-Control", "public, max-age=600")
		var field template.HTML
		if instance {
			field = iss.InstanceField(w, requestOf("anna"), "checkout", "cart-42")
		} else {
			field = iss.Field(w, requestOf("anna"), "checkout")
		}
		if c, err := iss.Verify(fieldValue(t, string(field)), "checkout", "anna"); err != nil || c.Instance != instance {
			t.Errorf("instance %t: Verify = %+v, %v", instance, c, err)
		}
		if got := w.Header().Values("Cache-Control"); len(got) != 1 || got[0] != "no-store" {
			t.Errorf("instance %t: Cache-Control %q, want no-store alone", instance, got)
		}
	}
}

func TestTemplateFunctionWritesTheFieldOfEachRequest(t *testing.T) {
	iss := newIssuerWith(t, oneKey(t), token.Config{Subject: userHeader})
	page := template.Must(template.New("page").Funcs(iss.FuncMap(nil, nil)).Parse(
		`<!doctype html>` + strings.Repeat("<br>", 2000) + // more than the server buffers
			`<form>{{if .}}{{submitToken "checkout" .}}{{else}}{{submitToken "checkout"}}{{end}}</form>`))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clone := template.Must(page.Clone()).Funcs(iss.FuncMap(w, r))
		if err := clone.Execute(w, r.FormValue("cart")); err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()

	get := func(query, user string) token.Claims {
		t.Helper()
		req := requestOf(user)
		req.RequestURI = ""
		req.URL.Scheme, req.URL.Host, req.URL.RawQuery = "http", srv.Listener.Addr().String(), query
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var body strings.Builder
		if _, err := io.Copy(&body, res.Body); err != nil {
			t.Fatal(err)
		}
		if got := res.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control %q, want no-store", got)
		}
		c, err := iss.Verify(fieldValue(t, body.String()), "checkout", user)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if a, b := get("", "anna"), get("", "anna"); a.Instance || a.ID == b.ID {
		t.Errorf("two pages: %v and %v, want two fresh ids", a.ID, b.ID)
	}
	if a, b := get("cart=42", "anna"), get("cart=42", "anna"); !a.Instance || key(a) != key(b) {
		t.Errorf("two pages of one cart: %v and %v, want one record", a.ID, b.ID)
	}
	if a, b := get("cart=42", "anna"), get("cart=42", "ben"); key(a) == key(b) {
		t.Error("two subjects have one record")
	}
}

func TestTemplateFunctionRefuses(t *testing.T) {
	iss := newIssuer(t, oneKey(t))
	forRequest := iss.FuncMap(httptest.NewRecorder(), requestOf("anna"))
	for name, tt := range map[string]struct {
		funcs        template.FuncMap
		source, want string
	}{
		"no request":      {iss.FuncMap(nil, nil), `{{submitToken "checkout"}}`, "functions of no request"},
		"no writer":       {iss.FuncMap(nil, requestOf("anna")), `{{submitToken "checkout"}}`, "functions of no request"},
		"empty instance":  {forRequest, `{{submitToken "checkout" ""}}`, "the instance is empty"},
		"three arguments": {forRequest, `{{submitToken "checkout" "a" "b"}}`, "more than a form and an instance"},
	} {
		err := template.Must(template.New("page").Funcs(tt.funcs).Parse(tt.source)).Execute(&strings.Builder{}, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Execute = %v, want an error with %q", name, err, tt.want)
		}
	}
}
