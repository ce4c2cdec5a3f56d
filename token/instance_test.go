package token_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/token"
)

func TestInstanceTokenStaysTheSameForItsPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		iss := newIssuerWith(t, oneKey(t), token.Config{TTL: time.Hour})
		start := time.Now() // midnight, so that a period begins
		first := iss.IssueInstance("checkout", "anna", "cart-42")
		if want := start.Add(2 * time.Hour); !first.ExpiresAt.Equal(want) {
			t.Errorf("expires %v, want %v", first.ExpiresAt, want)
		}
		time.Sleep(time.Hour - time.Millisecond)
		if again := iss.IssueInstance("checkout", "anna", "cart-42"); again != first {
			t.Errorf("at the end of the period: %+v, want the first token", again.ExpiresAt)
		}
		time.Sleep(time.Millisecond)
		next := iss.IssueInstance("checkout", "anna", "cart-42")
		if next.Value == first.Value || !next.ExpiresAt.Equal(start.Add(3*time.Hour)) {
			t.Errorf("in the next period: same token %t, expires %v; want another token that expires %v",
				next.Value == first.Value, next.ExpiresAt, start.Add(3*time.Hour))
		}

		c1, err1 := iss.Verify(first.Value, "checkout", "anna")
		c2, err2 := iss.Verify(next.Value, "checkout", "anna")
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if !c1.Instance || !c1.ID.Instance() || c1.ID[6]>>4 != 8 || c1.ID[8]>>6 != 2 {
			t.Errorf("%+v: want an instance, version 8, variant 2", c1)
		}
		if !c1.IssuedAt.Equal(start) || !c1.ExpiresAt.Equal(first.ExpiresAt) {
			t.Errorf("issued %v, expires %v; want %v, %v", c1.IssuedAt, c1.ExpiresAt, start, first.ExpiresAt)
		}
		if !c2.IssuedAt.Equal(start.Add(time.Hour)) || !c2.ExpiresAt.Equal(next.ExpiresAt) {
			t.Errorf("issued %v, expires %v; want %v, %v", c2.IssuedAt, c2.ExpiresAt, start.Add(time.Hour), next.ExpiresAt)
		}
		if c1.ID == c2.ID {
			t.Error("the ids of two periods are the same")
		}
		if k1, k2 := key(c1), key(c2); k1 != k2 || !strings.HasPrefix(k1, "0000000000008") || len(k1) != 32 {
			t.Errorf("keys %s and %s: want the same, 32 digits, with no time", k1, k2)
		}
	})
}

func key(c token.Claims) string { return string(c.ID.AppendKey(nil)) }

func TestInstanceTokenIsTheSameFromEveryProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(17 * time.Minute)
		a := newIssuer(t, oneKey(t)).IssueInstance("checkout", "anna", "cart-42")
		time.Sleep(5 * time.Hour)
		b := newIssuer(t, newRing(t, secret('a'), secret('b'))).IssueInstance("checkout", "anna", "cart-42")
		if a != b {
			t.Error("two issuers with the same newest key gave different tokens")
		}
	})
}

func TestKeyRotationKeepsTheRecordOfAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := newIssuer(t, oneKey(t)).IssueInstance("checkout", "anna", "cart-42")
		iss := newIssuer(t, newRing(t, secret('b'), secret('a')))
		after := iss.IssueInstance("checkout", "anna", "cart-42")
		if before.Value == after.Value {
			t.Error("the token did not change with the key")
		}
		c1, err1 := iss.Verify(before.Value, "checkout", "anna")
		c2, err2 := iss.Verify(after.Value, "checkout", "anna")
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if c1.ID != c2.ID || key(c1) != key(c2) {
			t.Errorf("ids %v and %v: want the same", c1.ID, c2.ID)
		}
	})
}

func TestInstancesAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		iss := newIssuer(t, oneKey(t))
		keys := map[string][3]string{}
		for _, names := range [][3]string{
			{"checkout", "anna", "cart-42"},
			{"checkout", "anna", "cart-43"},
			{"checkout", "ben", "cart-42"},
			{"refund", "anna", "cart-42"},
			{"checkout", "annac", "art-42"},
			{"checkouta", "nna", "cart-42"},
			{"checkout", "", "annacart-42"},
			{"", "", ""},
			{"", "", strings.Repeat("x", 1000)},
			{"", strings.Repeat("x", 1000), ""},
		} {
			c, err := iss.Verify(iss.IssueInstance(names[0], names[1], names[2]).Value, names[0], names[1])
			if err != nil {
				t.Fatal(err)
			}
			if other, ok := keys[key(c)]; ok {
				t.Errorf("%q and %q have the same record", names, other)
			}
			keys[key(c)] = names
		}
	})
}

func TestInstanceTokenOfAnOddTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ttl := range []time.Duration{time.Millisecond, 1500 * time.Microsecond, 7 * time.Minute, 36 * time.Hour} {
			iss := newIssuerWith(t, oneKey(t), token.Config{TTL: ttl})
			for range 50 {
				now := time.Now().Truncate(time.Millisecond)
				tok := iss.IssueInstance("f", "s", "i")
				if left := tok.ExpiresAt.Sub(now); left <= iss.TTL() || left > 2*iss.TTL() {
					t.Fatalf("TTL %v: %v to live, want one to two times %v", ttl, left, iss.TTL())
				}
				time.Sleep(ttl / 7)
			}
		}
	})
}
