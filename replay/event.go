package replay

import (
	"context"
	"net/http"
	"time"
)

// A Kind says what an [Event] tells of. Its text is the metric's name.
type Kind string

// The kinds of events.
const (
	Claimed    Kind = "claimed"     // a request won its key; the handler runs
	TakenOver  Kind = "taken_over"  // as Claimed, from an owner whose lease ran out
	Sealed     Kind = "sealed"      // the outcome was stored
	Released   Kind = "released"    // the key was given back; nothing was stored
	Waited     Kind = "waited"      // a duplicate has waited for another's outcome
	Replayed   Kind = "replayed"    // a duplicate was answered with the stored response
	Mismatch   Kind = "mismatch"    // the key was used for another payload: 422
	Refused    Kind = "refused"     // the request was answered with an error, told in Err
	LeaseLost  Kind = "lease_lost"  // an owner came too late: another outcome stands
	SealLost   Kind = "seal_lost"   // the outcome could not be stored; a retry may run again
	StoreError Kind = "store_error" // a store call failed
	FailedOpen Kind = "failed_open" // the handler ran unguarded, as DangerouslyFailOpen says
	FreshToken Kind = "fresh_token" // Development: the same payload came under another token
)

// An Event tells of one step of one request.
type Event struct {
	Kind    Kind
	Key     string        // the record's key; "" if the request was refused before it had one
	Attempt int           // of the owner, where there is one
	Status  int           // of the response, where there is one
	Waited  time.Duration // for Waited
	Err     error         // for Refused, StoreError and SealLost
	Request *http.Request // nil for events of a [Once]; not to be changed or kept
}

// An observer is called for each event, on the goroutine of the request. It must
// be quick and safe for concurrent use.
type observer = func(ctx context.Context, e Event)
