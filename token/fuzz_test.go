package token_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/submitonce/submitonce/token"
)

func FuzzVerify(f *testing.F) {
	id := freshIDAt(time.Now())
	good := mint(1, secret('a'), id, "f", "s")
	for _, value := range []string{
		"", " ", good, good[:47], good + "A", good[:47] + "=", good[:47] + "\n", good[:40] + "\r\n\r\n\r\n\r\n",
		mint(1, secret('b'), id, "f", "s"), mint(1, secret('c'), id, "f", "s"), mint(1, secret('a'), id, "f", "t"), mint(0, secret('a'), id, "f", "s"),
		strings.Repeat("A", 48), strings.Repeat("_", 48), strings.Repeat("\xff", 48), strings.Repeat("é", 24),
	} {
		f.Add(value)
	}
	iss := newIssuer(f, newRing(f, secret('a'), secret('b')))
	f.Fuzz(func(t *testing.T, value string) {
		raw, decodeErr := base64.RawURLEncoding.Strict().DecodeString(value)
		wellFormed := len(value) == 48 && decodeErr == nil && len(raw) == 36 && raw[0] == 1

		c, err := iss.Verify(value, "f", "s")
		switch {
		case err == token.ErrMalformed && !wellFormed:
		case err == token.ErrInvalid && wellFormed:
		case err == nil && wellFormed:
			// A fuzzer does not guess a MAC: this is a token of one of the keys.
			if value != mint(1, secret('a'), c.ID, "f", "s") && value != mint(1, secret('b'), c.ID, "f", "s") {
				t.Errorf("Verify(%q) accepts a token that no key signed, or another spelling of one", value)
			}
		default:
			t.Errorf("Verify(%q) = %v; well-formed: %t", value, err, wellFormed)
		}
		if err != nil && c != (token.Claims{}) {
			t.Errorf("Verify(%q) = %+v beside an error", value, c)
		}
		if r := token.Redact(value); wellFormed && r != value[:24]+"…" {
			t.Errorf("Redact(%q) = %q, want the first half", value, r)
		}
	})
}

// FuzzNames looks for two pairs of a form and a subject that one token is good for.
func FuzzNames(f *testing.F) {
	f.Add("checkout", "anna", "checkout", "ben")
	f.Add("ab", "c", "a", "bc")
	f.Add("", "", "\x00", "")
	f.Add(strings.Repeat("a", 128), "", strings.Repeat("a", 127), "a")
	f.Add(strings.Repeat("a", 300), "b", strings.Repeat("a", 300), "c")
	iss := newIssuer(f, oneKey(f))
	f.Fuzz(func(t *testing.T, form1, subject1, form2, subject2 string) {
		same := form1 == form2 && subject1 == subject2
		for _, tok := range []token.Token{iss.Issue(form1, subject1), iss.IssueInstance(form1, subject1, "i")} {
			if _, err := iss.Verify(tok.Value, form1, subject1); err != nil {
				t.Fatalf("for its own names: Verify = %v", err)
			}
			if _, err := iss.Verify(tok.Value, form2, subject2); (err == nil) != same {
				t.Fatalf("for other names: Verify = %v; the same names: %t", err, same)
			}
		}
	})
}
