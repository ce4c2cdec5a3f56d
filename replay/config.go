package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/submitonce/submitonce/token"
)

// Names on the wire.
const (
	// DefaultReplayedHeader marks a replay; its value is "true".
	DefaultReplayedHeader = "Idempotent-Replayed"

	// IdempotencyKeyHeader carries a key that the client has chosen
	// (draft-ietf-httpapi-idempotency-key-header).
	IdempotencyKeyHeader = "Idempotency-Key"
)

// Off turns a source of keys off, as the value of [Config.TokenHeader] or
// [Config.TokenField].
const Off = "-"

// Defaults of the limits in [Config], in bytes.
const (
	DefaultFormLimit     = 1 << 20
	DefaultResponseLimit = 1 << 20
)

// A Config says how a [Guard] works. Its fields stand in the order of a
// request's life. A zero field means the default that its comment names; only
// Tokens, or another source of keys, has to be set. A route that needs another
// policy gets another Guard over the same store.
type Config struct {
	// Skip leaves a request out: it goes to the handler as if there were no
	// guard. Use it for event streams and other live answers, which a guard would
	// hold back. The default leaves out none. GET, HEAD, OPTIONS and TRACE are
	// always left out (RFC 9110, section 9.2.1).
	Skip func(r *http.Request) bool

	// Tokens verifies submit tokens, and says by its Subject function whose
	// request it is. Without it there are no submit tokens, and IdempotencyKey or
	// Key has to be set.
	Tokens *token.Issuer

	// Forms names the forms whose tokens are good here. The default is the one
	// form "", which the token endpoint issues for when no form is asked for.
	Forms []string

	// TokenHeader is the header that carries the token, [Off] if none. A name
	// with an underscore is refused, because many proxies drop such headers. The
	// default is X-Submit-Token.
	TokenHeader string

	// TokenField is the form field that carries the token where there is no
	// JavaScript to set a header, [Off] if none. The default is submit_token, which
	// is what [token.Issuer.Field] writes.
	TokenField string

	// IdempotencyKey accepts keys that the client has chosen, from the
	// Idempotency-Key header, where a request has no submit token. They can be
	// guessed, so that a subject is needed to keep clients apart; a request
	// without one is refused. The default is false.
	IdempotencyKey bool

	// Key takes the key from the request where it has no token and no
	// Idempotency-Key, for example a webhook's transaction id and event type. Keys
	// of different paths are different keys. It may read the body if that is not above FormLimit. An empty key is a missing
	// one; an error refuses the request, as 400 unless it is one of this package's
	// errors. Check the request's signature before: whoever knows a key can have
	// its response. The default is nil: there is no such key.
	Key func(r *http.Request) (string, error)

	// Subject says whose request it is, as a session or user id, or another scope
	// that keys are apart in, such as a tenant. The default is the Subject
	// function of Tokens. Tokens are verified for the subject that it returns. It
	// may read the body if that is not above 64 KiB, or the form that the token is
	// looked for in.
	Subject func(r *http.Request) string

	// SharedKeys says that all clients share one space of Idempotency-Keys on
	// purpose, so that whoever knows a key gets its response. The default is
	// false.
	SharedKeys bool

	// FormLimit is the largest body, in bytes, in which a token is looked for; it
	// is kept in memory meanwhile. A larger one is answered with 413. Requests
	// with the token in a header have no such limit. The default is 1 MiB.
	FormLimit int64

	// Wait is how long a duplicate waits for the outcome of the first request
	// before it is answered with 409 and Retry-After. The default is 30 seconds;
	// negative means not at all.
	Wait time.Duration

	// Lease is how long a claim stands without a sign of life of its owner, who
	// extends it while the handler runs. It bounds how long a crash holds up the
	// next duplicate. At least 100 ms. The default is 30 seconds.
	Lease time.Duration

	// HandlerTimeout bounds the handler: its context ends, and its lease is no
	// longer extended. A deadline that middleware outside has set is not its own,
	// unless KeepClientCancel is set. The default is 5 minutes; negative means no
	// bound.
	HandlerTimeout time.Duration

	// KeepClientCancel lets the client's hang-up, and a deadline of middleware
	// outside, end the handler's context, as they do without a guard. The default is false: a second click makes a
	// browser abort the first request, and that one may have acted already.
	KeepClientCancel bool

	// Classify says which statuses are outcomes, to be sealed; others release the
	// key. A handler can overrule it with [Seal] and [Release]. The default is
	// [DefaultClassify].
	Classify func(status int) bool

	// ResponseLimit is the largest body of a response that is kept, in bytes. A
	// larger one reaches the first client whole; duplicates are told that the
	// first request succeeded. The default is 1 MiB.
	ResponseLimit int64

	// DropHeaders names response headers that are not kept, in any spelling, nor
	// trailers of these names. The default is none: Set-Cookie is replayed, because the first answer may never have arrived.
	DropHeaders []string

	// EncryptionKeys encrypts stored responses with AES-256-GCM: 32 random bytes
	// each, the first for new records, the others to read older ones. Change the
	// first after at most 2^32 records (NIST SP 800-38D, section 8.3). The default
	// is none: responses are stored as they are.
	EncryptionKeys [][]byte

	// Retention is how long a sealed response is kept, and so how late a retry
	// may come. The default is 7 days.
	Retention time.Duration

	// ReplayedHeader is the response header that marks a replay. The default is
	// Idempotent-Replayed.
	ReplayedHeader string

	// StoreTimeout bounds each call of the store. The default is 800 ms.
	StoreTimeout time.Duration

	// SealTimeout bounds all tries to store an outcome while the store is away.
	// The default is 5 seconds.
	SealTimeout time.Duration

	// Reruns is how often a handler is run again whose transaction has lost a
	// conflict with another one, at its commit or at one of its statements, in a
	// store that lends transactions. Only a handler whose every effect is in that transaction may
	// be run again, and only a body up to 64 KiB, or a form that the token was looked
	// for in, can be read again. The default is 0: a commit that fails is answered
	// with 503, and a statement that fails as the handler answers that.
	Reruns int

	// DangerouslyFailOpen runs the handler unguarded when the store does not
	// answer a claim, so that a duplicate may run again. The default is false: the
	// request is answered with 503.
	DangerouslyFailOpen bool

	// OnError answers a request that was not served. The default is
	// [DefaultOnError].
	OnError func(w http.ResponseWriter, r *http.Request, err error)

	// Development looks for the commonest mistake in this field, a new token for
	// each click, and warns of it: it remembers for some seconds which payloads
	// came from whom. The default is false.
	Development bool

	// Observe is told of each step of each request, for metrics. It is called on
	// the request's goroutine, and has to be quick and safe for concurrent use.
	// The default is nil: nobody is told, which costs nothing.
	Observe func(ctx context.Context, e Event)

	// Logger hears what an operator must know. Tokens never reach it. The default
	// is slog.Default().
	Logger *slog.Logger
}

// DefaultClassify seals 2xx and 3xx. Others release: a form whose fields were
// refused is corrected and sent again with the same token, and a failure may be
// tried again. 307 and 308 seal, too: where they are no outcome, because the client
// is to send the same request to another place with its token, leave them out in a
// Classify of your own, or call [Release].
func DefaultClassify(status int) bool { return status >= 200 && status < 400 }

// check fills in the defaults and returns all that is wrong.
func (c *Config) check(store Store) (timing, error) {
	t := timing{
		Wait: c.Wait, Lease: c.Lease, Retention: c.Retention,
		HandlerTimeout: c.HandlerTimeout, StoreTimeout: c.StoreTimeout, SealTimeout: c.SealTimeout,
	}
	errs := []error{t.check(store, "Config"), checkReruns(c.Reruns, "Config")}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("replay: Config."+format, args...)) }

	c.TokenHeader = cmp.Or(c.TokenHeader, token.HeaderName)
	c.TokenField = cmp.Or(c.TokenField, token.FieldName)
	c.ReplayedHeader = cmp.Or(c.ReplayedHeader, DefaultReplayedHeader)
	c.FormLimit = cmp.Or(c.FormLimit, DefaultFormLimit)
	c.ResponseLimit = cmp.Or(c.ResponseLimit, DefaultResponseLimit)
	if c.Classify == nil {
		c.Classify = DefaultClassify
	}
	if c.OnError == nil {
		c.OnError = DefaultOnError
	}
	if c.Subject == nil && c.Tokens != nil && c.Tokens.BindsSubject() {
		c.Subject = c.Tokens.Subject
	}
	if c.Forms = slices.Clone(c.Forms); len(c.Forms) == 0 {
		c.Forms = []string{""}
	}

	tokens := c.Tokens != nil && (c.TokenHeader != Off || c.TokenField != Off)
	if !tokens && !c.IdempotencyKey && c.Key == nil {
		bad("Tokens is not set, and neither IdempotencyKey nor Key is: no request could have a key; set one of them")
	}
	if c.IdempotencyKey && c.Subject == nil && !c.SharedKeys {
		bad("IdempotencyKey accepts keys that clients choose and others can guess: set Subject, " +
			"so that nobody gets another's response, or SharedKeys if all clients are to share them")
	}
	if c.SharedKeys && !c.IdempotencyKey {
		bad("SharedKeys is set without IdempotencyKey, and means nothing then")
	}
	for _, h := range []struct{ field, name string }{
		{"TokenHeader", c.TokenHeader}, {"ReplayedHeader", c.ReplayedHeader},
	} {
		switch {
		case h.name == Off && h.field == "TokenHeader":
		case strings.Contains(h.name, "_"):
			bad("%s is %q: proxies drop headers whose names have an underscore; use a hyphen", h.field, h.name)
		case !validToken(h.name):
			bad("%s is %q, which is not the name of a header (RFC 9110, section 5.1)", h.field, h.name)
		}
	}
	if tokens && t.Retention < 2*c.Tokens.TTL() {
		bad("Retention is %v, less than twice the tokens' life of %v: a token could claim its key again after "+
			"its record has expired; keep records longer, or let tokens live shorter", t.Retention, c.Tokens.TTL())
	}
	if c.FormLimit < 0 {
		bad("FormLimit is %d: it is a number of bytes", c.FormLimit)
	}
	if c.ResponseLimit < 0 {
		bad("ResponseLimit is %d: it is a number of bytes", c.ResponseLimit)
	}
	for i, k := range c.EncryptionKeys {
		if len(k) != encryptionKeySize {
			bad("EncryptionKeys[%d] has %d bytes: it has to have %d, from crypto/rand", i, len(k), encryptionKeySize)
		}
	}
	c.TokenHeader = http.CanonicalHeaderKey(c.TokenHeader)
	c.ReplayedHeader = http.CanonicalHeaderKey(c.ReplayedHeader)
	return t, errors.Join(errs...)
}

// validToken reports whether s is a token of RFC 9110, section 5.6.2.
func validToken(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return true
}
