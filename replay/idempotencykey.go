package replay

import (
	"fmt"
	"strings"
)

// MaxIdempotencyKeyLen is the longest Idempotency-Key that is accepted, in
// bytes without the quotes. It is stored as its SHA-256, so that it may be longer
// than [MaxKeyLen].
const MaxIdempotencyKeyLen = 1024

// parseIdempotencyKey returns the key in the values of an Idempotency-Key
// header, "" if there is none. The draft makes it a Structured Field String,
// "..." (draft-ietf-httpapi-idempotency-key-header, section 2.1; RFC 9651,
// section 3.3.3); many clients send it bare, which means the same key. The
// header may be repeated, or joined by a proxy, as long as the key is the same.
func parseIdempotencyKey(values []string) (string, error) {
	var one string
	for _, v := range values {
		for rest := strings.Trim(v, " \t"); rest != ""; {
			key, after, err := parseItem(rest)
			if err != nil {
				return "", fmt.Errorf("%w: Idempotency-Key: %w", ErrMalformedKey, err)
			}
			if len(key) > MaxIdempotencyKeyLen {
				return "", fmt.Errorf("%w: Idempotency-Key: longer than %d bytes", ErrMalformedKey, MaxIdempotencyKeyLen)
			}
			if key != "" && one != "" && key != one {
				return "", fmt.Errorf("%w: two Idempotency-Keys", ErrConflictingKeys)
			}
			if key != "" {
				one = key
			}
			after = strings.TrimLeft(after, " \t")
			if after != "" && after[0] != ',' {
				return "", fmt.Errorf("%w: Idempotency-Key: text behind the key", ErrMalformedKey)
			}
			rest = strings.TrimLeft(strings.TrimPrefix(after, ","), " \t")
		}
	}
	if one != "" && strings.TrimSpace(one) == "" {
		return "", nil // blanks are no key
	}
	return one, nil
}

type keyError string

func (e keyError) Error() string { return string(e) }

// parseItem takes one key from the front of s, with the parameters behind it,
// which the draft gives no meaning.
func parseItem(s string) (key, rest string, err error) {
	if s[0] == '"' {
		key, rest, err = parseQuoted(s[1:])
	} else {
		n := strings.IndexAny(s, ",;")
		if n < 0 {
			n = len(s)
		}
		key, rest = strings.TrimRight(s[:n], " \t"), s[n:]
		for i := range len(key) {
			if key[i] <= ' ' || key[i] > '~' || key[i] == '"' || key[i] == '\\' {
				return "", "", keyError("a bare key is visible ASCII without quotes and backslashes")
			}
		}
	}
	if err != nil {
		return "", "", err
	}
	if trimmed := strings.TrimLeft(rest, " "); trimmed != "" && trimmed[0] == ';' {
		rest, err = skipParameters(trimmed)
	}
	return key, rest, err
}

// parseQuoted reads an sf-string behind its opening quote (RFC 9651, section
// 4.2.5).
func parseQuoted(s string) (key, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], nil
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "", keyError(`a backslash stands only before " or \`)
			}
			b.WriteByte(s[i])
		case c < ' ' || c > '~':
			return "", "", keyError("a string is printable ASCII")
		default:
			b.WriteByte(c)
		}
	}
	return "", "", keyError("the closing quote is missing")
}

// skipParameters passes over ;name=value pairs up to a comma outside of quotes.
func skipParameters(s string) (rest string, err error) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ',':
			return s[i:], nil
		case c == '"':
			_, after, err := parseQuoted(s[i+1:])
			if err != nil {
				return "", err
			}
			i = len(s) - len(after) - 1
		case c < ' ' || c > '~':
			return "", keyError("parameters are printable ASCII")
		}
	}
	return "", nil
}
