package redisstore

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/replay"
)

var (
	_ replay.Store   = (*Store)(nil)
	_ replay.Watcher = (*Store)(nil)
	_ io.Closer      = (*Store)(nil)
)

// DefaultPrefix is what [Config.Prefix] is if it is not set.
const DefaultPrefix = "submitonce:"

// A Config says how a [Store] uses Redis. Its zero value is right for most.
type Config struct {
	// Prefix begins the name of each key. It must hold no brace, since a cluster
	// would put all keys into one slot. The default is "submitonce:".
	Prefix string

	// Replicas is how many replicas have to acknowledge a claim and a seal, by
	// WAIT, before it counts. It costs one more round trip each, and makes it less
	// likely, but not impossible, that a fail-over loses them. The default is 0.
	Replicas int

	// ReplicasTimeout bounds that wait; after it the call fails, and a guard
	// answers 503 or tries the seal again. The default is 100 ms.
	ReplicasTimeout time.Duration

	// Logger hears what an operator must know. The default is slog.Default().
	Logger *slog.Logger
}

const (
	pendingMark = 'P'
	doneMark    = 'D'
	headSize    = 1 + len(replay.Owner{}) + 4

	// grace is how long an abandoned claim is kept for its attempt.
	grace = time.Minute
)

var (
	//go:embed scripts/claim.lua
	claimLua string
	//go:embed scripts/extend.lua
	extendLua string
	//go:embed scripts/seal.lua
	sealLua string
	//go:embed scripts/release.lua
	releaseLua string
)

// A Store keeps records in Redis. It is safe for concurrent use by any number of
// processes.
type Store struct {
	client  redis.UniversalClient
	c       Config
	publish string // PUBLISH, or SPUBLISH in a cluster

	claim, extend, seal, release *redis.Script
	oldSeal                      *redis.Script // without flags, for servers before Redis 7
	scripted                     atomic.Bool   // the server has no SET … NX GET: all claims go by script
	unflagged                    atomic.Bool   // the server does not know flags of scripts

	hubs hubs

	mu      sync.Mutex
	closed  bool           // guarded by mu
	running sync.WaitGroup // what Close waits for
	stop    context.CancelFunc
}

// New returns a store over client, or all that is wrong with c. It does not wait
// for the server; in the background it looks once whether the server may evict
// records, and warns if so. Close ends the store, not the client.
func New(client redis.UniversalClient, c Config) (*Store, error) {
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("redisstore: client is nil: make one with redis.NewUniversalClient"))
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		errs = append(errs, fmt.Errorf("redisstore: Config.Prefix is %q: a cluster takes what stands in braces for the whole key", c.Prefix))
	}
	if c.Replicas < 0 {
		errs = append(errs, fmt.Errorf("redisstore: Config.Replicas is %d: it has to be 0 or more", c.Replicas))
	}
	if c.ReplicasTimeout < 0 {
		errs = append(errs, fmt.Errorf("redisstore: Config.ReplicasTimeout is %v: it has to be positive", c.ReplicasTimeout))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if c.ReplicasTimeout == 0 {
		c.ReplicasTimeout = 100 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	s := &Store{
		client: client, c: c, publish: "PUBLISH",
		claim: redis.NewScript(claimLua), extend: redis.NewScript(extendLua),
		seal: redis.NewScript(sealLua), release: redis.NewScript(releaseLua),
	}
	_, body, _ := strings.Cut(sealLua, "\n")
	s.oldSeal = redis.NewScript(body)
	if _, ok := client.(*redis.ClusterClient); ok {
		s.publish = "SPUBLISH"
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.hubs = hubs{client: client, log: c.Logger, ctx: ctx, running: &s.running, hubs: make(map[redis.UniversalClient]*hub)}
	s.running.Go(func() { s.warnOfEviction(ctx) })
	return s, nil
}

// Close ends what the store runs in the background, and waits for it. It leaves
// the client open, never fails, and may be called twice.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.hubs.close()
	s.running.Wait()
	return nil
}

// check is what each call begins with.
func (s *Store) check(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return replay.ErrClosed
	}
	return ctx.Err()
}

// name returns the key in Redis. Braces are replaced, so that no client's key has
// a say in the slot, and the escape keeps keys apart.
func (s *Store) name(key string) string {
	if !strings.ContainsAny(key, "{}\x7f") {
		return s.c.Prefix + key
	}
	return s.c.Prefix + braces.Replace(key)
}

// Keys are printable ASCII, so that these three stand for nothing else.
var braces = strings.NewReplacer("{", "\x01", "}", "\x02")

// Claim implements [replay.Store], in one round trip unless an abandoned claim
// is taken over.
func (s *Store) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	if err := s.check(ctx); err != nil {
		return replay.Record{}, nil, fmt.Errorf("redisstore: claim: %w", err)
	}
	name := s.name(c.Key)
	record := make([]byte, 0, headSize)
	record = append(append(record, pendingMark), c.Owner[:]...)
	record = binary.BigEndian.AppendUint32(record, 1)

	rec, won, err := s.tryClaim(ctx, name, record, c)
	if err == nil && won {
		err = s.replicated(ctx)
	}
	if err != nil {
		return replay.Record{}, nil, fmt.Errorf("redisstore: claim: %w", oom(err))
	}
	if !won {
		return rec, nil, nil
	}
	return rec, &hold{s: s, name: name, owner: c.Owner}, nil
}

// tryClaim claims by a native command, which is cheaper than a script: SET … NX
// GET sets the record if there is none, and returns the one that stands. PTTL
// travels with it to tell how its lease stands.
func (s *Store) tryClaim(ctx context.Context, name string, record []byte, c replay.Claim) (rec replay.Record, won bool, err error) {
	if s.scripted.Load() {
		return s.claimByScript(ctx, name, record, c)
	}
	pipe := s.client.Pipeline()
	set := pipe.Do(ctx, "SET", name, record, "NX", "GET", "PX", (c.Lease + grace).Milliseconds())
	ttl := pipe.PTTL(ctx, name)
	_, _ = pipe.Exec(ctx) // each command has its own error
	stands, err := set.Text()
	switch {
	case errors.Is(err, redis.Nil):
		return replay.Record{State: replay.Pending, Attempt: 1, LeaseLeft: c.Lease}, true, nil
	case err != nil && strings.Contains(err.Error(), "syntax error"):
		s.scripted.Store(true) // before Redis 7, NX and GET exclude each other
		return s.claimByScript(ctx, name, record, c)
	case err != nil && isOOM(err):
		// A full server refuses the SET, but still says what stands.
		if rec, lookErr := s.look(ctx, name); lookErr == nil && rec.State != replay.Free {
			return rec, false, nil
		}
		return rec, false, err
	case err != nil:
		return rec, false, err
	}
	left, err := ttl.Result()
	if err != nil {
		return rec, false, err
	}
	rec, err = decode(stands, left)
	if err == nil && rec.State == replay.Pending && (rec.LeaseLeft <= 0 || stands[1:headSize-4] == string(c.Owner[:])) {
		return s.claimByScript(ctx, name, record, c)
	}
	return rec, false, err
}

func (s *Store) claimByScript(ctx context.Context, name string, record []byte, c replay.Claim) (rec replay.Record, won bool, err error) {
	reply, err := s.claim.Run(ctx, s.client, []string{name}, record,
		(c.Lease + grace).Milliseconds(), grace.Milliseconds()).Slice()
	if err != nil {
		return rec, false, err
	}
	if len(reply) != 3 {
		return rec, false, fmt.Errorf("the script returned %d values", len(reply))
	}
	stands, _ := reply[0].(string)
	left, _ := reply[1].(int64)
	rec, err = decode(stands, time.Duration(left)*time.Millisecond)
	return rec, reply[2] == int64(1), err
}

// decode reads a record with its life left.
func decode(stands string, left time.Duration) (replay.Record, error) {
	if len(stands) < headSize {
		return replay.Record{}, fmt.Errorf("a record of %d bytes: something else has written to its key", len(stands))
	}
	rec := replay.Record{Attempt: int(binary.BigEndian.Uint32([]byte(stands[headSize-4:])))}
	switch stands[0] {
	case doneMark:
		rec.State, rec.Response = replay.Done, []byte(stands[headSize:])
	case pendingMark:
		rec.State, rec.LeaseLeft = replay.Pending, left-grace
	default:
		return rec, errors.New("a record that is neither pending nor done: something else has written to its key")
	}
	return rec, nil
}

// Look implements [replay.Store] in one round trip.
func (s *Store) Look(ctx context.Context, key string) (replay.Record, error) {
	if err := s.check(ctx); err != nil {
		return replay.Record{}, fmt.Errorf("redisstore: look: %w", err)
	}
	rec, err := s.look(ctx, s.name(key))
	if err != nil {
		return replay.Record{}, fmt.Errorf("redisstore: look: %w", err)
	}
	return rec, nil
}

func (s *Store) look(ctx context.Context, name string) (replay.Record, error) {
	pipe := s.client.Pipeline()
	get, ttl := pipe.Get(ctx, name), pipe.PTTL(ctx, name)
	_, _ = pipe.Exec(ctx) // each command has its own error
	stands, err := get.Result()
	if errors.Is(err, redis.Nil) {
		return replay.Record{}, nil
	}
	var left time.Duration
	if err == nil {
		left, err = ttl.Result()
	}
	var rec replay.Record
	if err == nil {
		rec, err = decode(stands, left)
	}
	if err != nil || rec.State == replay.Pending && rec.LeaseLeft <= 0 {
		return replay.Record{}, err
	}
	return rec, nil
}

// replicated waits for the replicas, if there are to be any.
func (s *Store) replicated(ctx context.Context) error {
	if s.c.Replicas == 0 {
		return nil
	}
	n, err := s.client.Do(ctx, "WAIT", s.c.Replicas, s.c.ReplicasTimeout.Milliseconds()).Int()
	if err == nil && n < s.c.Replicas {
		err = fmt.Errorf("%d of %d replicas have acknowledged", n, s.c.Replicas)
	}
	return err
}

// oom tells a full server from one that is away.
func oom(err error) error {
	if isOOM(err) {
		return fmt.Errorf("%w: %w", replay.ErrStoreFull, err)
	}
	return err
}

func isOOM(err error) bool { return strings.HasPrefix(err.Error(), "OOM ") }

func (s *Store) warnOfEviction(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	reply, err := s.client.ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil {
		return // many hosts forbid CONFIG
	}
	if policy := reply["maxmemory-policy"]; policy != "" && policy != "noeviction" {
		s.c.Logger.LogAttrs(ctx, slog.LevelWarn,
			"submitonce: Redis may evict records before their time, and their tokens would run again; use noeviction",
			slog.String("maxmemory-policy", policy))
	}
}
