package replay

import (
	"context"
	"time"
)

// MaxKeyLen is the longest key that a [Store] is ever given, in bytes. The
// guard and [Once] replace longer keys, and keys with bytes that a store could
// trip over, by their SHA-256.
const MaxKeyLen = 255

// A State says how far the record under a key has come.
type State int

const (
	// Free means that no record stands: nobody has claimed the key, or its
	// claim was released, or the record has expired.
	Free State = iota

	// Pending means that an owner holds the key and its lease is running.
	Pending

	// Done means that the key is sealed with a response.
	Done
)

// String returns "free", "pending" or "done".
func (s State) String() string {
	switch s {
	case Free:
		return "free"
	case Pending:
		return "pending"
	case Done:
		return "done"
	}
	return "invalid"
}

// A Record is what stands under a key.
type Record struct {
	State State

	// Attempt is 1 for the first owner and one more for each owner that took
	// over an abandoned claim. It is 0 where it cannot be seen: a record that is
	// Free, or a claim inside a transaction that has not committed yet.
	Attempt int

	// Response is what Seal was given, to be read only. It is set on Done records
	// only.
	Response []byte

	// LeaseLeft is how long the owner's lease still runs; when it has passed,
	// another claim may take the key over. It is set on Pending records only,
	// and is 0 there if the store cannot tell, as with a claim that lives in
	// somebody's open transaction and ends with it.
	LeaseLeft time.Duration
}

// An Owner names one attempt of one request. It is drawn at random by the
// caller, so that a claim whose answer was lost can be repeated.
type Owner [16]byte

// A Claim asks for a key.
type Claim struct {
	// Key is 1 to [MaxKeyLen] bytes of printable ASCII (0x21 to 0x7E).
	Key string

	// Owner is who asks. A Claim by the owner that already holds the key wins
	// again and changes nothing but the lease, which starts anew.
	Owner Owner

	// Lease is how long the claim stands without being extended.
	Lease time.Duration
}

// A Store keeps at most one record per key and decides who owns it. It decides
// nothing else: which requests share a key, what a response means and how long
// it is kept are the caller's business, and owners and responses are opaque.
//
// A record expires: a pending one when its lease has run out, a done one when
// its retention has. An expired record counts as none, whether or not its space
// has been reclaimed yet. A claim that takes over an expired lease counts the
// attempts on, for as long as the store still has the abandoned record; it
// keeps one for at least a minute. Time is measured by one clock, that of the
// place where the records are kept; methods therefore take durations, never
// instants, and the clocks of the callers do not matter.
//
// Every method is atomic against all other calls for its key from any process.
// A Store and its Holds are safe for concurrent use, and keep no reference to
// slices that they are given. Nobody changes the slices that they return: they
// may be the records themselves.
// Responses come back byte for byte, whatever bytes they hold; a nil or empty
// response comes back empty.
//
// A call returns promptly once its context is cancelled. Any error other than
// [ErrLeaseLost], [ErrStoreFull] and [ErrUndone] means that the store could not
// answer, and that the call may or may not have had its effect. It may be
// repeated: repeating one that had its effect succeeds and does no harm. A lost
// race is not an error.
//
// A Store that starts a goroutine or a timer is an [io.Closer]; Close ends
// them, waits for them, and may be called twice. After Close, methods return
// [ErrClosed]. A Store may also be a [Watcher] and a [Sweeper].
//
// Package storetest checks every sentence of this.
type Store interface {
	// Claim takes c.Key if no record stands under it, and then returns a Hold
	// that is not nil and the Pending record that it made. Otherwise it changes
	// nothing, and returns a nil Hold and the record that stands: Pending or
	// Done, never Free.
	//
	// A bounded store without room for one more record returns ErrStoreFull. It
	// never makes room by dropping a record that has not expired.
	Claim(ctx context.Context, c Claim) (Record, Hold, error)

	// Look returns the record that stands under key, or a Free one. It changes
	// nothing.
	Look(ctx context.Context, key string) (Record, error)
}

// A Hold is a won claim. It ends with Seal or Release, or when another owner
// takes over after its lease has run out.
type Hold interface {
	// Extend lets the lease run for lease from now, and never shortens it. It
	// returns ErrLeaseLost if the hold has ended.
	Extend(ctx context.Context, lease time.Duration) error

	// Seal makes the record Done with response, for retention from now. It
	// succeeds after the lease has run out, too, as long as nobody has taken the
	// key over. It returns ErrLeaseLost if the hold has ended otherwise.
	// Repeating a Seal that had its effect succeeds and keeps the first response.
	Seal(ctx context.Context, response []byte, retention time.Duration) error

	// Release removes the record, so that the next claim wins at once, as
	// attempt 1. It does nothing if the hold has ended.
	Release(ctx context.Context) error
}

// A Lender is a [Hold] that owns what the handler writes: the claim, the
// handler's own writes and the response take effect together at Seal, or not at
// all. A database transaction is such a thing.
//
// Where a Hold is a Lender, a failed Seal means that the handler's work may be
// undone, so the guard never sends its response then. Seal returns [ErrUndone]
// when the work is undone for certain and may be tried again. Release, too,
// returns ErrUndone where it knows that the handler has failed only by a conflict
// with another one; the hold has ended then.
type Lender interface {
	Hold

	// Lend returns a context that carries what the hold lends to the handler.
	Lend(ctx context.Context) context.Context
}

// A Watcher is a [Store] that can tell when a record changes. A store that
// cannot is polled.
type Watcher interface {
	// Watch returns a channel that receives a value after each seal and each
	// release of key that begins after Watch has returned. It may receive more
	// often, and may fold several changes into one. It says nothing when a lease
	// runs out; Record.LeaseLeft does. The channel is never closed. The caller
	// watches first and claims then, so that no change falls between the two, and
	// calls stop, which may be called twice, when it has seen enough. A store may
	// lose a message, so the caller polls behind it, slowly.
	Watch(ctx context.Context, key string) (changed <-chan struct{}, stop func(), err error)
}

// A Sweeper is a [Store] that does not reclaim expired records by itself.
type Sweeper interface {
	// Sweep removes at most limit expired records and returns how many it
	// removed; fewer than limit means that there are no more for now. It never
	// removes a record that has not expired, and it leaves an abandoned claim in
	// place for a minute, so that a takeover can count the attempts on.
	Sweep(ctx context.Context, limit int) (removed int, err error)
}
