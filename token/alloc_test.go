//go:build !race

package token_test

import (
	"strings"
	"testing"

	"github.com/submitonce/submitonce/token"
)

// Under the race detector sync.Pool drops what it is given at random, so there
// is nothing to count there.
func TestVerifyAllocatesNothing(t *testing.T) {
	iss := newIssuer(t, newRing(t, secret('b'), secret('a')))
	long := strings.Repeat("x", 1000)
	tests := []struct {
		name, value, form, subject string
		want                       error
	}{
		{"good", iss.Issue("checkout", "anna").Value, "checkout", "anna", nil},
		{"old key", newIssuer(t, oneKey(t)).Issue("checkout", "anna").Value, "checkout", "anna", nil},
		{"long names", iss.Issue(long, long).Value, long, long, nil},
		{"foreign", iss.Issue("checkout", "anna").Value, "checkout", "ben", token.ErrInvalid},
		{"unknown key", newIssuer(t, newRing(t, secret('c'))).Issue("checkout", "anna").Value, "checkout", "anna", token.ErrInvalid},
		{"malformed", "nonsense", "checkout", "anna", token.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := testing.AllocsPerRun(1000, func() {
				if _, err := iss.Verify(tt.value, tt.form, tt.subject); err != tt.want {
					t.Fatalf("Verify = %v, want %v", err, tt.want)
				}
			})
			if n != 0 {
				t.Errorf("Verify allocates %v times, want 0", n)
			}
		})
	}
}

func TestIssueAllocatesTheTokenOnly(t *testing.T) {
	iss := newIssuer(t, oneKey(t))
	if n := testing.AllocsPerRun(1000, func() { iss.Issue("checkout", "anna") }); n != 1 {
		t.Errorf("Issue allocates %v times, want 1", n)
	}
}
