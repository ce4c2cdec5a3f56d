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
}

// write calls f, and if f wrote, waits until the replicas have it, if there are to
// be any. f may be called again after an error; it does the same then.
func (s *Store) write(ctx context.Context, name string, f func(session) (wrote bool, err error)) error {
	if s.c.Replicas == 0 {
		_, err := f(s.client)
		return err
	}
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		err := s.writeReplicated(ctx, name, f)
		var answer redis.Error
		if _, moved := redis.IsMovedError(err); moved {
			s.client.(*redis.ClusterClient).ReloadState(ctx)
		} else if err == nil || errors.Is(err, errNotReplicated) || errors.As(err, &answer) {
			return err
		} // else the connection was lost, perhaps long ago
		if pause > 300*time.Millisecond || !sleep(ctx, pause) {
			return err
		}
	}
}

var errNotReplicated = errors.New("too few replicas have acknowledged")

// writeReplicated writes and waits by one connection, since WAIT speaks of what
// its own connection has written.
func (s *Store) writeReplicated(ctx context.Context, name string, f func(session) (wrote bool, err error)) error {
	var conn *redis.Conn
	switch c := s.client.(type) {
	case *redis.Client:
		conn = c.Conn()
	case *redis.ClusterClient:
		node, err := c.MasterForKey(ctx, name)
		if err != nil {
			return err
		}
		conn = node.Conn()
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	wrote, err := f(conn)
	if err != nil || !wrote {
		return err
	}
	n, err := conn.Wait(ctx, s.c.Replicas, s.c.ReplicasTimeout).Result()
	if err == nil && n < int64(s.c.Replicas) {
		err = fmt.Errorf("%w: %d of %d", errNotReplicated, n, s.c.Replicas)
	}
	return err
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
