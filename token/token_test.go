package token_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"testing"

	"github.com/submitonce/submitonce/token"
)

// secret returns a key that is as good as any for a test, and unlike the others.
func secret(n byte) []byte { return bytes.Repeat([]byte{n}, token.MinKeyLen) }

func newRing(tb testing.TB, newest []byte, older ...[]byte) *token.Keyring {
	tb.Helper()
	ring, err := token.NewKeyring(newest, older...)
	if err != nil {
		tb.Fatal(err)
	}
	return ring
}

func oneKey(tb testing.TB) *token.Keyring {
	tb.Helper()
	return newRing(tb, secret('a'))
}

func newIssuer(tb testing.TB, ring *token.Keyring) *token.Issuer {
	tb.Helper()
	return newIssuerWith(tb, ring, token.Config{})
}

func newIssuerWith(tb testing.TB, ring *token.Keyring, c token.Config) *token.Issuer {
	tb.Helper()
	iss, err := token.New(ring, c)
	if err != nil {
		tb.Fatal(err)
	}
	return iss
}

// mint makes a token from its description in doc.go, without the package's code.
// Names are shorter than 128 bytes, so that a length is one byte.
func mint(version byte, key []byte, id token.ID, form, subject string) string {
	keyID := sha256.Sum256(append([]byte("submitonce key id\x00"), key...))
	b := append([]byte{version}, keyID[:3]...)
	b = append(b, id[:]...)

	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("submitonce token\x00"))
	mac.Write(b)
	mac.Write(append([]byte{byte(len(form))}, form...))
	mac.Write(append([]byte{byte(len(subject))}, subject...))
	return base64.RawURLEncoding.EncodeToString(append(b, mac.Sum(nil)[:16]...))
}
