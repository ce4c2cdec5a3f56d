package token

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Why a token was refused. [Issuer.Verify] returns these and no others, bare,
// and says no more, so as not to help anybody who is trying tokens out.
var (
	// ErrMalformed means that the text is no token: not [Len] characters of
	// base64url, or of a version that this package does not know.
	ErrMalformed = errors.New("token: malformed")

	// ErrInvalid means that the token was not issued for this form and this
	// subject with a key of the ring.
	ErrInvalid = errors.New("token: invalid")
)

// DefaultTTL is what [Config.TTL] is if it is not set.
const DefaultTTL = 24 * time.Hour

const maxTTL = 10 * 365 * 24 * time.Hour

// Config is what an [Issuer] may be told. The zero Config is valid; a site whose
// users log in sets Subject.
type Config struct {
	// TTL is how long a fresh token can claim its key, from its issue on. An
	// instance token can for one to two times as long. The limit is on the first
	// claim only: what has been claimed in time is replayed for as long as its
	// record stands. Keep it well under the records' retention, for after that a
	// token that is still alive runs the handler again. It is at least a
	// millisecond and at most ten years, and counts in whole milliseconds. The
	// default is 24 hours.
	TTL time.Duration

	// Subject returns whom a token is issued to, and the guard asks it again
	// when the token comes back: a session id, or a user id if a form that was
	// opened before a new login should still work after it. A token is refused
	// from any other subject. "" stands for nobody in particular. It must be safe
	// for concurrent use. The default returns "" for every request: tokens are
	// then bound to their form alone.
	Subject func(*http.Request) string

	// SharedInstances lets [Issuer.Handler] hand out an instance token to a
	// request without a subject. Whoever names the instance then gets that
	// token, and with it the response of whoever submitted first, so set it only
	// if the names cannot be guessed. The default is false: such a request is
	// refused.
	SharedInstances bool
}

// An Issuer issues tokens and verifies them. It keeps nothing of the tokens that
// it has issued, so that any process with the same keys and the same TTL will do.
// It is safe for concurrent use.
type Issuer struct {
	ring            *Keyring
	ttl             time.Duration
	subject         func(*http.Request) string
	sharedInstances bool
}

// New returns an Issuer. Its error names everything that is wrong with its
// arguments.
func New(ring *Keyring, c Config) (*Issuer, error) {
	var problems []error
	if ring == nil || len(ring.keys) == 0 {
		problems = append(problems, errors.New("token: New: the key ring is empty; make one with NewKeyring"))
	}
	if c.TTL == 0 {
		c.TTL = DefaultTTL
	}
	if c.TTL < time.Millisecond || c.TTL > maxTTL {
		problems = append(problems, fmt.Errorf("token: New: Config.TTL is %v, want %v to %v", c.TTL, time.Millisecond, maxTTL))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return &Issuer{ring: ring, ttl: c.TTL.Truncate(time.Millisecond), subject: c.Subject, sharedInstances: c.SharedInstances}, nil
}

// Subject returns whom the request comes from, as [Config.Subject] says, or ""
// if that is not set.
func (i *Issuer) Subject(r *http.Request) string {
	if i.subject == nil {
		return ""
	}
	return i.subject(r)
}

// BindsSubject reports whether [Config.Subject] is set, so that tokens are good
// for one subject only.
func (i *Issuer) BindsSubject() bool { return i.subject != nil }

// TTL returns [Config.TTL] in whole milliseconds, or its default.
func (i *Issuer) TTL() time.Duration { return i.ttl }

// Issue returns a fresh token for the form and the subject, which is unlike any
// other. Call it once when a page is made, never when it is submitted.
func (i *Issuer) Issue(form, subject string) Token {
	return i.token(freshID(time.Now()), form, subject)
}

func (i *Issuer) token(id ID, form, subject string) Token {
	return Token{Value: sign(i.ring.newest(), id, form, subject), ExpiresAt: i.expiry(id)}
}

// Claims is what a verified token says.
type Claims struct {
	// ID tells the submit from all others.
	ID ID

	// IssuedAt is when the token was issued, to the millisecond. For an instance
	// token it is the start of the period in which it was.
	//
	// It is the clock of the issuing process that says so. A token that by our
	// own clock comes from further in the future than the TTL was stamped by a
	// clock that went wrong, so that nobody knows when it was issued: IssuedAt
	// and ExpiresAt are then the zero Time, and the token can claim nothing, but
	// a record that it has made still answers it. A clock that is less than the
	// TTL ahead does no harm but that its tokens live for so much longer.
	IssuedAt time.Time

	// ExpiresAt is when the token can no longer claim its key.
	ExpiresAt time.Time

	// Instance says that this is an instance token. It is ID.Instance().
	Instance bool
}

// Verify checks that value is a token that was issued for the form and the
// subject, and returns what it says. Its errors are [ErrMalformed] and
// [ErrInvalid]. That a token has expired is no error, because one that was
// claimed in time goes on to be answered: compare ExpiresAt before a first claim.
func (i *Issuer) Verify(value, form, subject string) (Claims, error) {
	t, ok := parse(value)
	if !ok {
		return Claims{}, ErrMalformed
	}
	k := i.ring.find(t.keyID())
	if k == nil || !verify(k, &t, form, subject) {
		return Claims{}, ErrInvalid
	}
	c := Claims{ID: t.id()}
	c.Instance = c.ID.Instance()
	if c.ID.millis() <= time.Now().Add(i.ttl).UnixMilli() {
		c.IssuedAt, c.ExpiresAt = c.ID.Time(), i.expiry(c.ID)
	}
	return c, nil
}

// expiry returns when the token of id can no longer claim.
func (i *Issuer) expiry(id ID) time.Time {
	if id.Instance() {
		return id.Time().Add(2 * i.ttl)
	}
	return id.Time().Add(i.ttl)
}
