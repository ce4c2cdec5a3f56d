package token_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/token"
)

// The format is a promise: tokens are out on pages while servers are upgraded,
// and records are kept under ids.
func TestGoldenTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // at midnight UTC, 2000-01-01
		iss := newIssuer(t, oneKey(t))
		id := freshIDAt(time.Now())
		const (
			fresh    = "AQvYyADcas-sAHECgwAAAAAAAATU60uF-fvTrBxSAnrsvoqV"
			instance = "AQvYyADcas-sAI2jgE83nWr7EzdxoWCSbSL7pJv1NZaokr8F"
		)
		if got := mint(1, secret('a'), id, "checkout", "anna"); got != fresh {
			t.Errorf("the description in doc.go makes %s, want %s", got, fresh)
		}
		c, err := iss.Verify(fresh, "checkout", "anna")
		if got, want := c.ID.String(), "00dc6acf-ac00-7102-8300-000000000004"; err != nil || got != want {
			t.Errorf("Verify(%s) = %s, %v; want %s", fresh, got, err, want)
		}
		if got := iss.IssueInstance("checkout", "anna", "cart-42").Value; got != instance {
			t.Errorf("IssueInstance = %s, want %s", got, instance)
		}
		c, err = iss.Verify(instance, "checkout", "anna")
		if got, want := string(c.ID.AppendKey(nil)), "0000000000008da3804f379d6afb1337"; err != nil || got != want {
			t.Errorf("Verify(%s): key %s, %v; want %s", instance, got, err, want)
		}
	})
}

// The MAC's input is hashed piece by piece through a fixed buffer; every
// position of the names' borders relative to it must come out the same.
func TestNamesOfEveryLengthAreBoundWhole(t *testing.T) {
	iss := newIssuer(t, oneKey(t))
	names := strings.Repeat("n", 600)
	for n := range 600 {
		form, subject := names[:n], names[n:]
		value := iss.Issue(form, subject).Value
		if _, err := iss.Verify(value, form, subject); err != nil {
			t.Fatalf("form of %d bytes: Verify = %v, want nil", n, err)
		}
		if _, err := iss.Verify(value, form+"n", subject[1:]); err != token.ErrInvalid {
			t.Fatalf("form of %d bytes, border moved: Verify = %v, want ErrInvalid", n, err)
		}
		if _, err := iss.Verify(value, form, subject[1:]+"m"); err != token.ErrInvalid {
			t.Fatalf("form of %d bytes, last byte changed: Verify = %v, want ErrInvalid", n, err)
		}
	}
}

func TestEveryChangeOfATokenIsRefused(t *testing.T) {
	iss := newIssuer(t, oneKey(t))
	for kind, value := range map[string]string{
		"fresh":    iss.Issue("checkout", "anna").Value,
		"instance": iss.IssueInstance("checkout", "anna", "cart-42").Value,
	} {
		raw, err := base64.RawURLEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		for bit := range len(raw) * 8 {
			flipped := append([]byte(nil), raw...)
			flipped[bit/8] ^= 1 << (bit % 8)
			want := token.ErrInvalid
			if bit < 8 {
				want = token.ErrMalformed // the version
			}
			if c, err := iss.Verify(base64.RawURLEncoding.EncodeToString(flipped), "checkout", "anna"); err != want || c != (token.Claims{}) {
				t.Errorf("%s token, bit %d flipped: Verify = %+v, %v; want no claims, %v", kind, bit, c, err, want)
			}
		}
		for at := range len(value) {
			for b := range 256 {
				if byte(b) == value[at] {
					continue
				}
				changed := value[:at] + string([]byte{byte(b)}) + value[at+1:]
				if _, err := iss.Verify(changed, "checkout", "anna"); err == nil {
					t.Errorf("%s token, character %d changed to %#x: verified", kind, at, b)
				}
			}
		}
	}
}

func TestMalformedTokens(t *testing.T) {
	iss := newIssuer(t, oneKey(t))
	id := freshIDAt(time.Now())
	id[11], id[12], id[13] = 0xfb, 0xff, 0xbf // so that there is a - and a _ to misspell
	good := mint(1, secret('a'), id, "f", "s")
	if _, err := iss.Verify(good, "f", "s"); err != nil || !strings.Contains(good, "-") || !strings.Contains(good, "_") {
		t.Fatalf("the token to misspell, %s: Verify = %v", good, err)
	}
	tests := []struct{ name, value string }{
		{"empty", ""},
		{"blank", " "},
		{"one character less", good[:47]},
		{"one character more", good + "A"},
		{"padding", good + "="},
		{"padding inside the length", good[:47] + "="},
		{"space before", " " + good},
		{"space inside the length", good[:47] + " "},
		{"line break at the end", good + "\n"},
		{"line break inside the length", good[:24] + "\n" + good[24:47]},
		{"four line breaks inside the length", good[:24] + "\r\n\r\n" + good[24:44]},
		{"standard alphabet", strings.NewReplacer("-", "+", "_", "/").Replace(good)},
		{"percent-encoded", strings.Replace(good, "-", "%2D", 1)},
		{"quoted", `"` + good[:46] + `"`},
		{"not ASCII", good[:46] + "é"},
		{"version 0", mint(0, secret('a'), id, "f", "s")},
		{"version 2", mint(2, secret('a'), id, "f", "s")},
		{"48 bytes of something else", strings.Repeat("{*}:", 12)},
		{"a UUID", id.String()},
		{"9,000 characters", strings.Repeat("A", 9000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if c, err := iss.Verify(tt.value, "f", "s"); err != token.ErrMalformed || c != (token.Claims{}) {
				t.Errorf("Verify(%q) = %+v, %v; want no claims, %v", tt.value, c, err, token.ErrMalformed)
			}
		})
	}
}
