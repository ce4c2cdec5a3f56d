package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/replay"
)

// A hold is a won claim. All its state is in Redis.
type hold struct {
	s    *Store
	name string
	head head // the whole record, while it is ours
}

// What the scripts return.
const (
	lost   = 0 // the record is not ours
	untold = 2 // done, but those who wait could not be told
)

// Extend implements [replay.Hold] in one round trip.
func (h *hold) Extend(ctx context.Context, lease time.Duration) error {
	s := h.s
	return s.call(ctx, "extend", func() error {
		n, err := s.scripts.extend.Run(ctx, s.client, []string{h.name}, h.head[:], millis(lease+grace)).Int()
		return h.ended(ctx, n, err)
	})
}

// Seal implements [replay.Hold] in one round trip.
func (h *hold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	s := h.s
	if err := s.begin(ctx); err != nil {
		return fail("seal", err)
	}
	defer s.calls.Done()
	// The record is a copy, so that a call which outlasts ctx reads nothing that is
	// the caller's again.
	record := h.head.sealed(response)
	var err error
	if s.c.Replicas == 0 && s.heeds(ctx) {
		err = h.seal(ctx, s.client, record, retention)
	} else {
		err = h.sealAside(ctx, record, retention)
	}
	if err != nil {
		return fail("seal", err)
	}
	return nil
}

// sealAside seals where it takes more than the call to the server.
func (h *hold) sealAside(ctx context.Context, record []byte, retention time.Duration) error {
	f := func() (struct{}, error) {
		return struct{}{}, h.s.write(ctx, h.name, func(to session) error {
			return h.seal(ctx, to, record, retention)
		})
	}
	var err error
	if h.s.heeds(ctx) {
		_, err = f()
	} else {
		_, err = aside(ctx, h.s, f)
	}
	return err
}

// seal seals by a native command where there is one, which is cheaper than a
// script: SET … IFEQ writes only over the pending record that is ours. PUBLISH
// travels with it, and is heard for nothing if it wrote nothing.
func (h *hold) seal(ctx context.Context, to session, record []byte, retention time.Duration) error {
	s := h.s
	if s.unequal.Load() {
		return h.sealByScript(ctx, to, record, retention)
	}
	set := redis.NewStatusCmd(ctx, "set", h.name, record, "ifeq", h.head[:], "px", millis(retention))
	told := redis.NewIntCmd(ctx, s.publish, h.name, "")
	pipe := to.Pipeline()
	_ = pipe.BatchProcess(ctx, set, told) // it sends nothing yet
	wait := s.wait(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has its own error
	switch err := set.Err(); {
	case err == nil:
	case errors.Is(err, redis.Nil), redis.IsOOMError(err):
		// It is another's, or sealed already; or a full server takes it from a
		// script only.
		return h.sealByScript(ctx, to, record, retention)
	case strings.Contains(err.Error(), "syntax error"):
		s.unequal.Store(true) // before Valkey 8.1 and Redis 8.4
		return h.sealByScript(ctx, to, record, retention)
	default:
		return err
	}
	if told.Err() != nil {
		s.mute(ctx)
	}
	s.finished.add(h.name)
	return s.acknowledged(wait)
}

func (h *hold) sealByScript(ctx context.Context, to session, record []byte, retention time.Duration) error {
	s := h.s
	script := s.scripts.seal
	if s.unflagged.Load() {
		script = s.scripts.oldSeal
	}
	ms := millis(retention)
	cmd, wait := s.run(ctx, to, script, h.name, h.head[:], record, ms, s.publish)
	if err := cmd.Err(); err != nil && script != s.scripts.oldSeal && strings.Contains(err.Error(), "compil") {
		s.unflagged.Store(true) // before Redis 7, "#!" is no Lua
		cmd, wait = s.run(ctx, to, s.scripts.oldSeal, h.name, h.head[:], record, ms, s.publish)
	}
	n, err := cmd.Int()
	if err = h.ended(ctx, n, err); err != nil {
		return err
	}
	s.finished.add(h.name)
	return s.acknowledged(wait)
}

// Release implements [replay.Hold] in one round trip.
func (h *hold) Release(ctx context.Context) error {
	s := h.s
	return s.call(ctx, "release", func() error {
		n, err := s.scripts.release.Run(ctx, s.client, []string{h.name}, h.head[:], s.publish).Int()
		return h.ended(ctx, n, err)
	})
}

func (h *hold) ended(ctx context.Context, n int, err error) error {
	switch {
	case err != nil:
		return err
	case n == lost:
		return replay.ErrLeaseLost
	case n == untold:
		h.s.mute(ctx)
	}
	return nil
}

// mute says that those who wait could not be told.
func (s *Store) mute(ctx context.Context) {
	s.muted.Do(func() {
		s.c.Logger.LogAttrs(ctx, slog.LevelWarn,
			"submitonce: Redis refuses "+s.publish+", so that duplicates learn of outcomes by polling only;"+
				" allow this user the channels that begin as the keys do",
			slog.String("channels", s.c.Prefix+"*"))
	})
}
