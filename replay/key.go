package replay

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/submitonce/submitonce/token"
)

// An identity is what a request's key is, and what its source says of it.
type identity struct {
	key     string
	expires time.Time // of a token; zero: never
	issued  time.Time
	isToken bool
}

// identify finds the request's key. The sources rank in the order of the code:
// a submit token decides over an Idempotency-Key, which browsers have begun to
// add of their own accord. No store has been asked when it returns.
func (g *Guard) identify(r *http.Request, b *body) (identity, error) {
	b.req = r
	b.kind = bodyTypeOf(r)
	b.parsed = alreadyParsed(r, b.kind)
	if g.c.Tokens != nil {
		value, err := g.readToken(r, b)
		if err != nil {
			return identity{}, err
		}
		if value != "" {
			return g.verify(r, b, value)
		}
	}
	if g.c.IdempotencyKey {
		key, err := parseIdempotencyKey(r.Header[IdempotencyKeyHeader])
		if err != nil {
			return identity{}, err
		}
		if key != "" {
			return g.clientIdentity(r, b, key)
		}
	}
	if g.c.Key != nil {
		return g.functionIdentity(r, b)
	}
	return identity{}, ErrMissingKey
}

// readToken returns the token from the header or the form, "" if there is none.
func (g *Guard) readToken(r *http.Request, b *body) (string, error) {
	var inHeader string
	if g.c.TokenHeader != Off {
		v, err := single(r.Header[g.c.TokenHeader])
		if err != nil {
			return "", err
		}
		inHeader = v
	}
	if g.c.TokenField == Off || !b.kind.form() {
		return inHeader, nil
	}
	b.field, b.token = g.c.TokenField, inHeader
	switch {
	case inHeader == "" || b.kind.urlencoded:
		b.fill(g.c.FormLimit)
	default:
		b.fill(smallBody)
	}
	if b.brokenOff() {
		return "", fmt.Errorf("%w: %w", ErrIncompleteBody, b.err)
	}
	if !b.whole && inHeader == "" {
		var limit *http.MaxBytesError
		switch {
		case errors.As(b.err, &limit): // that the application has set
			return "", b.err
		case b.err != nil:
			return "", fmt.Errorf("%w: %w", ErrIncompleteBody, b.err)
		}
		return "", &TooLargeError{Limit: g.c.FormLimit}
	}
	inField, err := single(b.fields())
	switch {
	case err != nil:
		return "", err
	case inHeader != "" && inField != "" && inHeader != inField:
		return "", fmt.Errorf("%w: the token in the header is not that in the form", ErrConflictingKeys)
	case inHeader != "":
		return inHeader, nil
	}
	return inField, nil
}

// single returns the one value that a source has, "" if it is blank or absent.
// A proxy may have joined repeated headers by commas.
func single(values []string) (string, error) {
	if len(values) == 1 && strings.IndexByte(values[0], ',') < 0 {
		return strings.TrimSpace(values[0]), nil
	}
	var one string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			part = strings.TrimSpace(part)
			switch {
			case part == "" || part == one:
			case one == "":
				one = part
			default:
				return "", fmt.Errorf("%w: two submit tokens", ErrConflictingKeys)
			}
		}
	}
	return one, nil
}

// verify checks the token for this request's subject and one of the forms.
func (g *Guard) verify(r *http.Request, b *body, value string) (identity, error) {
	subject, err := g.subject(r, b)
	if err != nil {
		return identity{}, err
	}
	for i, form := range g.c.Forms {
		var claims token.Claims
		claims, err = g.c.Tokens.Verify(value, form, subject)
		if err != nil {
			continue
		}
		scope := g.scopes[i]
		if subject != "" {
			scope = tokenScope(subject, form)
		}
		key := claims.ID.AppendKey(append(make([]byte, 0, 64), 't'))
		key = append(append(key, '.'), scope...)
		return identity{key: string(key), expires: claims.ExpiresAt, issued: claims.IssuedAt, isToken: true}, nil
	}
	if errors.Is(err, token.ErrMalformed) {
		return identity{}, fmt.Errorf("%w: %w", ErrMalformedKey, err)
	}
	return identity{}, fmt.Errorf("%w: %w", ErrInvalidToken, err)
}

// subject asks whose request it is. The answer may be in the body.
func (g *Guard) subject(r *http.Request, b *body) (string, error) {
	if g.c.Subject == nil {
		return "", nil
	}
	b.fill(smallBody)
	b.lend(r)
	subject := g.c.Subject(r)
	if !b.takeBack(r) {
		return "", &http.MaxBytesError{Limit: smallBody}
	}
	return subject, nil
}

func (g *Guard) clientIdentity(r *http.Request, b *body, key string) (identity, error) {
	subject := ""
	if !g.c.SharedKeys {
		var err error
		if subject, err = g.subject(r, b); err != nil {
			return identity{}, err
		}
		if subject == "" {
			return identity{}, ErrNoSubject
		}
	}
	return identity{key: hashedKey('i', subject, "", key)}, nil
}

func (g *Guard) functionIdentity(r *http.Request, b *body) (identity, error) {
	b.fill(g.c.FormLimit)
	if b.brokenOff() {
		return identity{}, fmt.Errorf("%w: %w", ErrIncompleteBody, b.err)
	}
	b.passOn(r)
	key, err := g.c.Key(r)
	b.passOn(r)
	switch {
	case err != nil:
		return identity{}, fmt.Errorf("%w: %w", ErrMalformedKey, err)
	case key == "":
		return identity{}, ErrMissingKey
	case b.stream != nil:
		return identity{}, &TooLargeError{Limit: g.c.FormLimit}
	}
	subject, err := g.subject(r, b)
	if err != nil {
		return identity{}, err
	}
	return identity{key: hashedKey('f', subject, r.URL.Path, key)}, nil
}

// tokenScope is how the key of a token's record ends.
func tokenScope(subject, form string) string {
	scope := scopeOf(subject, form)
	return base64.RawURLEncoding.EncodeToString(scope[:16])
}

// hashedKey makes the record's key of one that somebody else has chosen, so that
// no byte of theirs reaches a store.
func hashedKey(source byte, subject, route, key string) string {
	scope := scopeOf(subject, route)
	h := sha256.New()
	h.Write(scope[:])
	_, _ = h.Write([]byte(key))
	return string(source) + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func scopeOf(subject, form string) [sha256.Size]byte {
	var scratch [256]byte
	b := binary.AppendUvarint(scratch[:0], uint64(len(subject)))
	b = append(b, subject...)
	return sha256.Sum256(append(b, form...))
}

// jobKey makes the record's key of that of a [Once].
func jobKey(name, key string) string {
	sum := scopeOf(name, key)
	return "j" + base64.RawURLEncoding.EncodeToString(sum[:])
}
