package token_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/token"
)

func TestTokenVerifiesForItsFormAndSubjectOnly(t *testing.T) {
	iss := newIssuer(t, oneKey(t))
	long := strings.Repeat("x", 1000)
	tests := []struct {
		name                       string
		form, subject              string // issued to
		verifiedForm, verifiedSubj string
		want                       error
	}{
		{"same", "checkout", "anna", "checkout", "anna", nil},
		{"neither", "", "", "", "", nil},
		{"other subject", "checkout", "anna", "checkout", "ben", token.ErrInvalid},
		{"other form", "checkout", "anna", "refund", "anna", token.ErrInvalid},
		{"no subject", "checkout", "anna", "checkout", "", token.ErrInvalid},
		{"a subject where there was none", "checkout", "", "checkout", "anna", token.ErrInvalid},
		{"no form", "checkout", "anna", "", "anna", token.ErrInvalid},
		{"border moved right", "ab", "c", "abc", "", token.ErrInvalid},
		{"border moved left", "ab", "c", "a", "bc", token.ErrInvalid},
		{"swapped", "anna", "checkout", "checkout", "anna", token.ErrInvalid},
		{"case", "checkout", "anna", "checkout", "Anna", token.ErrInvalid},
		{"not text", "\x00\xff", "\xfe", "\x00\xff", "\xfe", nil},
		{"long", long, long, long, long, nil},
		{"long, other end of the form", long + "a", long, long + "b", long, token.ErrInvalid},
		{"long, other end of the subject", long, long + "a", long, long + "b", token.ErrInvalid},
		{"long, border moved", long + "x", long, long, "x" + long, token.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for kind, tok := range map[string]token.Token{
				"fresh":    iss.Issue(tt.form, tt.subject),
				"instance": iss.IssueInstance(tt.form, tt.subject, "cart-42"),
			} {
				if _, err := iss.Verify(tok.Value, tt.verifiedForm, tt.verifiedSubj); err != tt.want {
					t.Errorf("%s token: Verify = %v, want %v", kind, err, tt.want)
				}
			}
		})
	}
}

func TestFreshTokensAreUUIDv7InOrderOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		iss := newIssuer(t, oneKey(t))
		last := ""
		for range 100 {
			now := time.Now()
			tok := iss.Issue("checkout", "anna")
			c, err := iss.Verify(tok.Value, "checkout", "anna")
			if err != nil {
				t.Fatal(err)
			}
			if !c.IssuedAt.Equal(now) || !c.ExpiresAt.Equal(now.Add(24*time.Hour)) || !tok.ExpiresAt.Equal(c.ExpiresAt) {
				t.Fatalf("issued %v, expires %v and %v; want %v and a day later", c.IssuedAt, c.ExpiresAt, tok.ExpiresAt, now)
			}
			if c.ID[6]>>4 != 7 || c.ID[8]>>6 != 2 || c.Instance || c.ID.Instance() {
				t.Fatalf("ID %v: want version 7, variant 2, no instance", c.ID)
			}
			key := string(c.ID.AppendKey([]byte("t")))
			if want := "t" + strings.ReplaceAll(c.ID.String(), "-", ""); key != want {
				t.Fatalf("key %q, want %q", key, want)
			}
			if key <= last {
				t.Fatalf("key %q is not after %q", key, last)
			}
			last = key
			time.Sleep(time.Millisecond)
		}
	})
}

func TestFreshTokensDifferWithinOneMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		iss := newIssuer(t, oneKey(t))
		seen := map[token.ID]bool{}
		for range 1000 {
			c, err := iss.Verify(iss.Issue("", "").Value, "", "")
			if err != nil {
				t.Fatal(err)
			}
			seen[c.ID] = true
		}
		if len(seen) != 1000 {
			t.Errorf("%d different ids of 1000", len(seen))
		}
	})
}

func TestExpiredTokenStillVerifies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		iss := newIssuerWith(t, oneKey(t), token.Config{TTL: 15 * time.Minute})
		start := time.Now()
		value := iss.Issue("checkout", "anna").Value
		time.Sleep(300 * 24 * time.Hour)
		c, err := iss.Verify(value, "checkout", "anna")
		if err != nil {
			t.Fatal(err)
		}
		if want := start.Add(15 * time.Minute); !c.ExpiresAt.Equal(want) || !c.IssuedAt.Equal(start) {
			t.Errorf("issued %v, expires %v; want %v, %v", c.IssuedAt, c.ExpiresAt, start, want)
		}
	})
}

// A token from a clock that is far ahead would stay alive beyond the retention
// of its record and then run twice, so it may not claim.
func TestTokenFromTheFutureClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		iss := newIssuerWith(t, oneKey(t), token.Config{TTL: time.Hour})
		now := time.Now()
		for _, tt := range []struct {
			ahead time.Duration
			known bool
		}{
			{time.Millisecond, true},
			{5 * time.Minute, true},
			{time.Hour, true},
			{time.Hour + time.Millisecond, false},
			{1000 * 24 * time.Hour, false},
		} {
			at := now.Add(tt.ahead)
			id := freshIDAt(at)
			c, err := iss.Verify(mint(1, secret('a'), id, "f", "s"), "f", "s")
			if err != nil || c.ID != id {
				t.Errorf("%v ahead: Verify = %v, %v; want its id, so that its record can answer", tt.ahead, c.ID, err)
			}
			if tt.known && (!c.IssuedAt.Equal(at) || !c.ExpiresAt.Equal(at.Add(time.Hour))) {
				t.Errorf("%v ahead: issued %v, expires %v; want %v and an hour later", tt.ahead, c.IssuedAt, c.ExpiresAt, at)
			}
			if !tt.known && (!c.IssuedAt.IsZero() || !c.ExpiresAt.IsZero()) {
				t.Errorf("%v ahead: issued %v, expires %v; want zero times", tt.ahead, c.IssuedAt, c.ExpiresAt)
			}
		}
	})
}

func freshIDAt(at time.Time) token.ID {
	id := token.ID{6: 0x71, 7: 2, 8: 0x83, 15: 4}
	for i := range 6 {
		id[i] = byte(at.UnixMilli() >> (40 - 8*i))
	}
	return id
}

func TestNewNamesEveryProblem(t *testing.T) {
	_, err := token.New(nil, token.Config{TTL: -time.Second})
	if err == nil {
		t.Fatal("New returned no error")
	}
	for _, want := range []string{"NewKeyring", "Config.TTL is -1s"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	ring := oneKey(t)
	for ttl, ok := range map[time.Duration]bool{
		time.Millisecond - 1:          false,
		time.Millisecond:              true,
		10 * 365 * 24 * time.Hour:     true,
		10*365*24*time.Hour + 1:       false,
		time.Duration(1<<63 - 1):      false,
		90*time.Minute + 30*time.Hour: true,
	} {
		if _, err := token.New(ring, token.Config{TTL: ttl}); (err == nil) != ok {
			t.Errorf("TTL %v: New = %v, want success: %t", ttl, err, ok)
		}
	}
	if _, err := token.New(&token.Keyring{}, token.Config{}); err == nil {
		t.Error("New took a ring that NewKeyring did not make")
	}
}

func TestDefaults(t *testing.T) {
	iss := newIssuer(t, oneKey(t))
	if got := iss.TTL(); got != 24*time.Hour {
		t.Errorf("TTL = %v, want a day", got)
	}
	r, err := http.NewRequest("GET", "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := iss.Subject(r); got != "" {
		t.Errorf("Subject = %q, want none", got)
	}
	if iss.BindsSubject() {
		t.Error("BindsSubject = true without a subject function")
	}
	r.Header.Set("X-User", "anna")
	iss = newIssuerWith(t, oneKey(t), token.Config{TTL: time.Minute, Subject: userHeader})
	if got := iss.Subject(r); got != "anna" {
		t.Errorf("Subject = %q, want anna", got)
	}
	if !iss.BindsSubject() {
		t.Error("BindsSubject = false with a subject function")
	}
	if got := iss.TTL(); got != time.Minute {
		t.Errorf("TTL = %v, want a minute", got)
	}
}

func userHeader(r *http.Request) string { return r.Header.Get("X-User") }

func TestIssuerServesManyGoroutines(t *testing.T) {
	iss := newIssuer(t, newRing(t, secret('b'), secret('a')))
	old := newIssuer(t, oneKey(t))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 200 {
				for _, value := range []string{
					iss.Issue("checkout", "anna").Value,
					iss.IssueInstance("checkout", "anna", "cart-42").Value,
					old.Issue("checkout", "anna").Value,
				} {
					if _, err := iss.Verify(value, "checkout", "anna"); err != nil {
						t.Error(err)
					}
					if _, err := iss.Verify(value, "checkout", "ben"); !errors.Is(err, token.ErrInvalid) {
						t.Errorf("foreign token: Verify = %v, want %v", err, token.ErrInvalid)
					}
				}
			}
		})
	}
	wg.Wait()
}
