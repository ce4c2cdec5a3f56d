package token_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/token"
)

func TestNewKeyringNamesEveryProblem(t *testing.T) {
	tests := []struct {
		name   string
		newest []byte
		older  [][]byte
		want   []string // in the error; none: the ring is good
	}{
		{"one key", secret('a'), nil, nil},
		{"longer keys", bytes.Repeat([]byte("a"), 33), [][]byte{bytes.Repeat([]byte("b"), 4096)}, nil},
		{"three keys", secret('a'), [][]byte{secret('b'), secret('c')}, nil},
		{"no key", nil, nil, []string{"the newest key has 0 bytes, want at least 32"}},
		{"31 bytes", secret('a')[:31], nil, []string{"the newest key has 31 bytes"}},
		{"never filled", make([]byte, 32), nil, []string{"the newest key is all zero bytes"}},
		{"the same key twice", secret('a'), [][]byte{secret('b'), secret('a')}, []string{"older key 2 is in the ring already"}},
		{
			"everything at once", secret('a')[:1], [][]byte{secret('b'), make([]byte, 64), secret('b'), nil},
			[]string{"the newest key has 1 bytes", "older key 2 is all zero", "older key 3 is in the ring", "older key 4 has 0 bytes"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ring, err := token.NewKeyring(tt.newest, tt.older...)
			if len(tt.want) == 0 {
				if err != nil || ring == nil {
					t.Fatalf("NewKeyring = %v, %v; want a ring", ring, err)
				}
				return
			}
			if err == nil || ring != nil {
				t.Fatalf("NewKeyring = %v, %v; want an error", ring, err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("NewKeyring names %d problems, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("problem %d is %q, want it to say %q", i, lines[i], want)
				}
			}
		})
	}
}

// Two different keys with one id would let the wrong one be asked.
func TestNewKeyringRefusesKeysWithTheSameID(t *testing.T) {
	// The birthday bound of 24 bits is met after a few thousand keys.
	seen := map[[3]byte][]byte{}
	for n := uint64(1); n < 1<<20; n++ {
		key := binary.BigEndian.AppendUint64(make([]byte, 24), n)
		sum := sha256.Sum256(append([]byte("submitonce key id\x00"), key...))
		id := [3]byte(sum[:3])
		if other, ok := seen[id]; ok {
			_, err := token.NewKeyring(other, key)
			if err == nil || !strings.Contains(err.Error(), "same id") {
				t.Errorf("NewKeyring = %v, want an error about the same id", err)
			}
			return
		}
		seen[id] = key
	}
	t.Fatal("found no two keys with the same id")
}

func TestNewKeyringCopiesTheKeys(t *testing.T) {
	newest, older := secret('a'), secret('b')
	iss := newIssuer(t, newRing(t, newest, older))
	before := newIssuer(t, newRing(t, secret('b'))).Issue("checkout", "anna").Value
	clear(newest)
	clear(older)
	if _, err := iss.Verify(before, "checkout", "anna"); err != nil {
		t.Errorf("token of the older key: Verify = %v, want nil", err)
	}
	after := iss.Issue("checkout", "anna").Value
	if _, err := newIssuer(t, oneKey(t)).Verify(after, "checkout", "anna"); err != nil {
		t.Errorf("token issued after the change: Verify = %v, want nil", err)
	}
}

// Two processes that are a step apart in the rotation understand each other.
func TestRotationRefusesNoToken(t *testing.T) {
	steps := []*token.Issuer{
		newIssuer(t, newRing(t, secret('a'))),
		newIssuer(t, newRing(t, secret('a'), secret('b'))),
		newIssuer(t, newRing(t, secret('b'), secret('a'))),
		newIssuer(t, newRing(t, secret('b'))),
	}
	for from := range steps {
		value := steps[from].Issue("checkout", "anna").Value
		for to := range steps {
			var want error
			if from <= 1 && to == 3 || from >= 2 && to == 0 {
				want = token.ErrInvalid // a skipped step, or the dropped key
			}
			if _, err := steps[to].Verify(value, "checkout", "anna"); err != want {
				t.Errorf("issued at step %d, verified at step %d: %v, want %v", from, to, err, want)
			}
		}
	}
}
