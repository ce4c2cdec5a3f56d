package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// A session is where the commands of one call go.
type session interface {
	redis.Scripter
	Pipeline() redis.Pipeliner
	Process(ctx context.Context, cmd redis.Cmder) error
}

// write calls f with the session that it is to write by. After an error it may
// call f again, which does the same then.
func (s *Store) write(ctx context.Context, name string, f func(session) error) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok || s.c.Replicas == 0 {
		return f(s.client)
	}
	// WAIT names no key, so that the cluster's client would send it to any node.
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		node, err := cluster.MasterForKey(ctx, name)
		if err != nil {
			return err
		}
		err = f(node)
		if _, moved := redis.IsMovedError(err); !moved || pause > 300*time.Millisecond {
			return err
		}
		cluster.ReloadState(ctx) // in the background
		if !sleep(ctx, pause) {
			return err
		}
	}
}

// wait has the server wait, behind what pipe has to write, until the replicas have
// it, if there are to be any. WAIT speaks of what its own connection has written,
// so that it has to go by the same one, as the commands of a pipeline do.
func (s *Store) wait(ctx context.Context, pipe redis.Pipeliner) *redis.IntCmd {
	if s.c.Replicas == 0 {
		return nil
	}
	cmd := redis.NewIntCmd(ctx, "wait", s.c.Replicas, millis(s.c.ReplicasTimeout))
	_ = pipe.Process(ctx, cmd) // it sends nothing yet
	return cmd
}

// acknowledged returns what came of wait.
func (s *Store) acknowledged(wait *redis.IntCmd) error {
	if wait == nil {
		return nil
	}
	n, err := wait.Result()
	if err == nil && n < int64(s.c.Replicas) {
		err = fmt.Errorf("%w: %d of %d", errNotReplicated, n, s.c.Replicas)
	}
	return err
}

var errNotReplicated = errors.New("too few replicas have acknowledged")

// run runs a script that writes in one round trip, or two if the server does not
// have it yet.
func (s *Store) run(ctx context.Context, to session, script *redis.Script, name string, args ...any) (*redis.Cmd, *redis.IntCmd) {
	keys := []string{name}
	if s.c.Replicas == 0 {
		return script.Run(ctx, to, keys, args...), nil
	}
	for by := script.EvalSha; ; by = script.Eval {
		pipe := to.Pipeline()
		cmd, wait := by(ctx, pipe, keys, args...), s.wait(ctx, pipe)
		_, _ = pipe.Exec(ctx) // each command has its own error
		if err := cmd.Err(); err == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return cmd, wait
		}
	}
}

// sleep reports whether d has passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
