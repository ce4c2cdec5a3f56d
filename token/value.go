package token

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"
)

// A Token is what a page gets. Its Value must not reach a log, so the Token
// itself prints and logs as [Redact] says; put Value into pages. As JSON it is
// what [Issuer.Handler] answers, in full.
type Token struct {
	// Value is the token, [Len] characters of A-Z, a-z, 0-9, - and _.
	Value string `json:"token"`

	// ExpiresAt is when the token can no longer claim its key, in UTC.
	ExpiresAt time.Time `json:"expires_at"`
}

// String returns the token as [Redact] does.
func (t Token) String() string { return Redact(t.Value) }

// Format prints what String returns, whatever the verb, so that no verb shows
// the token in full.
func (t Token) Format(f fmt.State, _ rune) { io.WriteString(f, t.String()) }

// LogValue returns what String returns, as a [slog.Value].
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// Redact returns what may be logged of the text that a client sent as its token.
// Of a text as long as a token it is the first half, which holds enough of the
// ID to tell tokens apart and nothing of the MAC. Of any other text it is the
// length alone, for nobody knows what has been sent there.
func Redact(value string) string {
	if len(value) != Len {
		return "[" + strconv.Itoa(len(value)) + " bytes]"
	}
	for _, c := range []byte(value) {
		if !isBase64URL(c) {
			return "[" + strconv.Itoa(len(value)) + " bytes]"
		}
	}
	return value[:Len/2] + "…"
}

func isBase64URL(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
