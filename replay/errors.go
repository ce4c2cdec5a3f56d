package replay

import (
	"errors"
	"time"
)

// What a store answers. Package storetest says when.
var (
	// ErrLeaseLost means that a hold has ended: its lease ran out and another
	// owner has taken the key over, or its record is gone.
	ErrLeaseLost = errors.New("replay: lease lost")

	// ErrStoreFull means that a bounded store has no room for another claim. Give
	// it more room or a shorter retention.
	ErrStoreFull = errors.New("replay: store full")

	// ErrUndone means that a transaction could not commit: the claim, the
	// response and what the handler wrote are gone, and the request may run again.
	ErrUndone = errors.New("replay: work undone")

	// ErrClosed means that the store has been closed.
	ErrClosed = errors.New("replay: store closed")
)

// Why a request was not served. They reach [Config.OnError], wrapped or bare,
// and [Once.Do] returns some of them.
var (
	// ErrMissingKey means that the request carries no key from any source that
	// the guard accepts. The page has to send its token.
	ErrMissingKey = errors.New("replay: missing key")

	// ErrMalformedKey means that a token or key is not of the right form: too
	// long, or made of other characters than it may be.
	ErrMalformedKey = errors.New("replay: malformed key")

	// ErrConflictingKeys means that the request carries two different tokens or
	// two different keys, so that nobody can tell which submit it is.
	ErrConflictingKeys = errors.New("replay: conflicting keys")

	// ErrInvalidToken means that the token was not issued for this form and
	// subject, or not by us.
	ErrInvalidToken = errors.New("replay: invalid token")

	// ErrNoSubject means that the request has a key of the client's own choice,
	// but nobody whose key it could be: Config.Subject returned "" for it.
	ErrNoSubject = errors.New("replay: no subject")

	// ErrMismatch means that the key has been used for another payload, which has
	// its outcome.
	ErrMismatch = errors.New("replay: payload mismatch")

	// ErrIncompleteBody means that the request's body broke off.
	ErrIncompleteBody = errors.New("replay: incomplete body")

	// ErrStoreAway means that the store did not answer.
	ErrStoreAway = errors.New("replay: store away")

	// ErrUnreadable means that a record stands but cannot be read: it was
	// encrypted under a key that the guard no longer has, or is damaged.
	ErrUnreadable = errors.New("replay: unreadable record")
)

// An ExpiredError says that a token is too old to claim its key with. It is
// 403 on the wire.
type ExpiredError struct {
	// Unclaimed says that the token has certainly never been claimed: records
	// of its age would still stand, and there is none. The page may draw a new
	// token and submit again. Otherwise the token may have been used, so long ago
	// that its record has expired.
	Unclaimed bool
}

func (e *ExpiredError) Error() string {
	if e.Unclaimed {
		return "replay: token expired unclaimed"
	}
	return "replay: token expired"
}

// A PendingError says that another request still holds the key after the wait
// has run out.
type PendingError struct {
	// RetryAfter is when trying again is worth while.
	RetryAfter time.Duration
}

func (e *PendingError) Error() string { return "replay: still in progress" }

// A TooLargeError says that the body is larger than what the guard buffers to
// find the token in a form field.
type TooLargeError struct {
	Limit int64 // bytes
}

func (e *TooLargeError) Error() string { return "replay: body too large to fingerprint" }

// A NotKeptError says that the first request succeeded, but that its response
// was too large to be kept, or is encoded in a way that this client cannot read.
type NotKeptError struct {
	Status   int    // of the first response
	Location string // its Location header, if it had one
}

func (e *NotKeptError) Error() string { return "replay: response not kept" }
