package token_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/submitonce/submitonce/token"
)

func TestTokenIsNeverPrintedInFull(t *testing.T) {
	tok := newIssuer(t, oneKey(t)).Issue("checkout", "anna")
	want := tok.Value[:24] + "…"
	if got := token.Redact(tok.Value); got != want {
		t.Fatalf("Redact = %q, want %q", got, want)
	}

	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%60v"} {
		if got := fmt.Sprintf(verb, tok); got != want {
			t.Errorf("Sprintf(%q) = %q, want %q", verb, got, want)
		}
	}
	if got := fmt.Sprintf("%+v", struct{ T token.Token }{tok}); got != "{T:"+want+"}" {
		t.Errorf("in a struct: %q, want it redacted", got)
	}

	for name, newHandler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var out bytes.Buffer
		slog.New(newHandler(&out)).Info("issued", "token", tok)
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), tok.Value) {
			t.Errorf("%s log: %s, want it to hold %s", name, &out, want)
		}
	}
}

func TestTokenIsWholeInJSONAndPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tok := newIssuer(t, oneKey(t)).Issue("checkout", "anna")
		got, err := json.Marshal(tok)
		want := `{"token":"` + tok.Value + `","expires_at":"2000-01-02T00:00:00Z"}`
		if err != nil || string(got) != want {
			t.Errorf("Marshal = %s, %v; want %s", got, err, want)
		}
		var page strings.Builder
		if err := template.Must(template.New("").Parse(`<meta content="{{.Value}}">`)).Execute(&page, tok); err != nil {
			t.Fatal(err)
		}
		if want := `<meta content="` + tok.Value + `">`; page.String() != want {
			t.Errorf("page %s, want %s", &page, want)
		}
	})
}

func TestRedactShowsNothingOfWhatIsNoToken(t *testing.T) {
	for value, want := range map[string]string{
		"":                          "[0 bytes]",
		"my password":               "[11 bytes]",
		strings.Repeat("A", 47):     "[47 bytes]",
		strings.Repeat("A", 9000):   "[9000 bytes]",
		strings.Repeat("A\n", 24):   "[48 bytes]",
		strings.Repeat("\xff", 48):  "[48 bytes]",
		strings.Repeat("card", 12):  strings.Repeat("card", 6) + "…",
		strings.Repeat("4111 ", 10): "[50 bytes]",
	} {
		if got := token.Redact(value); got != want {
			t.Errorf("Redact(%q) = %q, want %q", value, got, want)
		}
	}
}
