package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/replay"
)

var (
	_ replay.Store   = (*Store)(nil)
	_ replay.Watcher = (*Store)(nil)
	_ io.Closer      = (*Store)(nil)
)

// A Store keeps records in Redis. It is safe for concurrent use by any number of
// processes.
type Store struct {
	client  redis.UniversalClient
	deaf    bool // the client does not heed the deadlines of contexts
	c       Config
	publish string // PUBLISH, or SPUBLISH in a cluster

	scripts   scripts
	scripted  atomic.Bool // the server has no SET … NX GET: all claims go by script
	unflagged atomic.Bool // the server does not know flags of scripts
	unequal   atomic.Bool // the server has no SET … IFEQ: all seals go by script
	muted     sync.Once   // it has been logged that waiters cannot be told

	finished *finished
	ears     *ears

	mu      sync.RWMutex
	closed  bool           // guarded by mu
	calls   sync.WaitGroup // counted up under mu, or by a call under way
	running sync.WaitGroup // what runs in the background
	stop    context.CancelFunc
}

// Close ends what the store runs in the background, and waits for it and for
// calls under way. It leaves the client open, never fails, and may be called
// twice.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.ears.close()
	s.calls.Wait()
	s.running.Wait()
	return nil
}

// Claim implements [replay.Store], in one round trip unless an abandoned claim
// is taken over.
func (s *Store) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	name := s.name(c.Key)
	if err := s.begin(ctx); err != nil {
		return replay.Record{}, nil, fail("claim", err)
	}
	defer s.calls.Done()
	var got claimed
	var err error
	if s.c.Replicas == 0 && s.heeds(ctx) {
		got, err = s.claim(ctx, s.client, name, c)
	} else {
		got, err = s.claimAside(ctx, name, c)
	}
	switch {
	case err != nil:
		return replay.Record{}, nil, fail("claim", err)
	case !got.won:
		return got.rec, nil, nil
	}
	return got.rec, &hold{s: s, name: name, head: pendingHead(c.Owner, got.rec.Attempt)}, nil
}

// claimed is the answer to a claim.
type claimed struct {
	rec replay.Record
	won bool
}

// claimAside claims where it takes more than the call to the server. It is apart,
// since its closures would cost the others memory.
func (s *Store) claimAside(ctx context.Context, name string, c replay.Claim) (claimed, error) {
	f := func() (got claimed, err error) {
		err = s.write(ctx, name, func(to session) (err error) {
			got, err = s.claim(ctx, to, name, c)
			return err
		})
		return got, err
	}
	if s.heeds(ctx) {
		return f()
	}
	return aside(ctx, s, f)
}

// claim claims by a native command, which is cheaper than a script: SET … NX GET
// sets the record if there is none, and returns the one that stands. PTTL travels
// with it to tell how its lease stands; it goes first, since a record that
// changes between the two is then taken for one that ends early, which does no
// harm, and not for one that stands long.
func (s *Store) claim(ctx context.Context, to session, name string, c replay.Claim) (claimed, error) {
	if s.finished.has(name) {
		rec, err := s.lookDone(ctx, to, name)
		if err != nil || rec.State == replay.Done {
			return claimed{rec: rec}, err
		}
		s.finished.remove(name)
	}
	if s.scripted.Load() {
		return s.claimByScript(ctx, to, name, c)
	}
	head := pendingHead(c.Owner, 1)
	key := any(name)
	ttl := redis.NewIntCmd(ctx, "pttl", key)
	set := redis.NewStringCmd(ctx, "set", key, head[:], "nx", "get", "px", millis(c.Lease+grace))
	pipe := to.Pipeline()
	_ = pipe.BatchProcess(ctx, ttl, set) // it sends nothing yet
	wait := s.wait(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has its own error
	stands, err := set.Bytes()
	switch {
	case err == nil:
	case errors.Is(err, redis.Nil):
		rec := replay.Record{State: replay.Pending, Attempt: 1, LeaseLeft: c.Lease}
		return claimed{rec, true}, s.acknowledged(wait)
	case redis.IsOOMError(err):
		// A full server refuses the SET, but still says what stands.
		if rec, lookErr := s.look(ctx, to, name); lookErr == nil && rec.State != replay.Free {
			return claimed{rec: rec}, nil
		}
		return claimed{}, err
	case strings.Contains(err.Error(), "syntax error"):
		s.scripted.Store(true) // before Redis 7, NX and GET exclude each other
		return s.claimByScript(ctx, to, name, c)
	default:
		return claimed{}, err
	}
	left, err := ttl.Result()
	if err != nil {
		return claimed{}, err
	}
	rec, err := decode(stands, left)
	switch {
	case err != nil:
		return claimed{}, err
	case rec.State == replay.Done:
		s.finished.add(name)
	case rec.LeaseLeft <= 0 || ownedBy(stands, c.Owner):
		return s.claimByScript(ctx, to, name, c)
	}
	return claimed{rec: rec}, nil
}

// lookDone returns the record under name if it is done, and else a Free one.
func (s *Store) lookDone(ctx context.Context, to session, name string) (replay.Record, error) {
	get := redis.NewStringCmd(ctx, "get", name)
	_ = to.Process(ctx, get) // the command has its error
	stands, err := get.Result()
	switch {
	case errors.Is(err, redis.Nil):
		return replay.Record{}, nil
	case err != nil:
		return replay.Record{}, err
	}
	rec, err := decode([]byte(stands), 0) // a copy: the client may have it from a cache
	if err != nil || rec.State != replay.Done {
		return replay.Record{}, err
	}
	return rec, nil
}

func (s *Store) claimByScript(ctx context.Context, to session, name string, c replay.Claim) (claimed, error) {
	head := pendingHead(c.Owner, 1)
	cmd, wait := s.run(ctx, to, s.scripts.claim, name, head[:], millis(c.Lease+grace), millis(grace))
	reply, err := cmd.Slice()
	if err != nil {
		return claimed{}, err
	}
	if len(reply) != 3 {
		return claimed{}, fmt.Errorf("the script returned %d values", len(reply))
	}
	stands, _ := reply[0].(string)
	left, _ := reply[1].(int64)
	rec, err := decode([]byte(stands), left)
	won := reply[2] == int64(1)
	if won && err == nil {
		err = s.acknowledged(wait)
	}
	return claimed{rec, won}, err
}

// Look implements [replay.Store] in one round trip.
func (s *Store) Look(ctx context.Context, key string) (replay.Record, error) {
	return call(ctx, s, "look", func() (replay.Record, error) {
		return s.look(ctx, s.client, s.name(key))
	})
}

func (s *Store) look(ctx context.Context, to session, name string) (replay.Record, error) {
	pipe := to.Pipeline()
	ttl, get := redis.NewIntCmd(ctx, "pttl", name), redis.NewStringCmd(ctx, "get", name)
	_ = pipe.BatchProcess(ctx, ttl, get) // in this order: see claim
	_, _ = pipe.Exec(ctx)                // each command has its own error
	stands, err := get.Result()
	if errors.Is(err, redis.Nil) {
		return replay.Record{}, nil
	}
	var left int64
	if err == nil {
		left, err = ttl.Result()
	}
	var rec replay.Record
	if err == nil {
		rec, err = decode([]byte(stands), left) // a copy: the client may have it from a cache
	}
	switch {
	case err != nil:
		return replay.Record{}, err
	case rec.State == replay.Done || rec.LeaseLeft > 0:
		return rec, nil
	case left == noKey: // it was claimed between the two
		return s.look(ctx, to, name)
	}
	return replay.Record{}, nil
}

// noKey is what PTTL returns where nothing stands.
const noKey = -2
