package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultPrefix is what [Config.Prefix] is if it is not set.
const DefaultPrefix = "submitonce:"

// A Config says how a [Store] uses Redis. Its zero value is right for most.
type Config struct {
	// Prefix begins the name of each key. It must hold no brace, since a cluster
	// would put all keys into one slot. The default is "submitonce:".
	Prefix string

	// Replicas is how many replicas have to acknowledge a claim and a seal, by
	// WAIT, before it counts. It makes it less likely, but not impossible, that a
	// fail-over loses them. The default is 0.
	Replicas int

	// ReplicasTimeout bounds that wait; after it the call fails, and a guard
	// answers 503 or tries the seal again. It has to be shorter than the client's
	// ReadTimeout. The default is 100 ms.
	ReplicasTimeout time.Duration

	// Logger hears what an operator must know. The default is slog.Default().
	Logger *slog.Logger
}

// check returns all that is wrong with client and c.
func (c Config) check(client redis.UniversalClient) error {
	var errs []error
	readTimeout := time.Duration(math.MaxInt64)
	switch client := client.(type) {
	case nil:
		errs = append(errs, errors.New("redisstore: client is nil: make one with redis.NewUniversalClient"))
	case *redis.Client:
		readTimeout = client.Options().ReadTimeout
	case *redis.ClusterClient:
		readTimeout = client.Options().ReadTimeout
		if client.Options().ReadOnly {
			errs = append(errs, errors.New("redisstore: client reads from replicas, which lag behind:"+
				" ReadOnly, RouteByLatency and RouteRandomly have to be false"))
		}
	case *redis.Ring:
		errs = append(errs, errors.New("redisstore: client is a Ring, which looks for a key on another server"+
			" while its own is away, so that handlers would run again: use a cluster or Sentinel"))
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
	if c.Replicas > 0 && readTimeout > 0 && c.ReplicasTimeout >= readTimeout {
		errs = append(errs, fmt.Errorf("redisstore: Config.ReplicasTimeout is %v: it has to be shorter than the client's ReadTimeout, %v",
			c.ReplicasTimeout, readTimeout))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.ReplicasTimeout == 0 {
		c.ReplicasTimeout = 100 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// New returns a store over client, or all that is wrong with client and c. It
// does not wait for the server; in the background it looks once whether the
// server may evict records, and warns if so. Close ends the store, not the
// client.
//
// Set ContextTimeoutEnabled in the client's options. Without it go-redis does not
// end a call when its context does, so that the store has to make a goroutine for
// each.
func New(client redis.UniversalClient, c Config) (*Store, error) {
	if err := c.check(client); err != nil {
		return nil, err
	}
	s := &Store{
		client: client, deaf: deaf(client), c: c.withDefaults(),
		publish: "PUBLISH", scripts: newScripts(), finished: newFinished(),
	}
	if _, ok := client.(*redis.ClusterClient); ok {
		s.publish = "SPUBLISH" // PUBLISH would go to every node
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.ears = newEars(ctx, s.client, &s.running)
	s.running.Go(func() { s.warnOfEviction(ctx) })
	return s, nil
}

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

// scripts are what native commands cannot do: to look before they write.
type scripts struct {
	claim, extend, seal, release *redis.Script
	oldSeal                      *redis.Script // seal without flags, for servers before Redis 7
}

func newScripts() scripts {
	_, unflagged, _ := strings.Cut(sealLua, "\n")
	return scripts{
		claim: redis.NewScript(claimLua), extend: redis.NewScript(extendLua),
		seal: redis.NewScript(sealLua), oldSeal: redis.NewScript(unflagged), release: redis.NewScript(releaseLua),
	}
}
