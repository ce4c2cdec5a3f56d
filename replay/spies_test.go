package replay_test

import (
	"bytes"
	"context"

	"github.com/submitonce/submitonce/replay"
)

// A spyStore keeps the keys that it was given.
type spyStore struct {
	replay.Store
	keys *[]string
}

func (s spyStore) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	*s.keys = append(*s.keys, c.Key)
	return s.Store.Claim(ctx, c)
}

// A sealSpy keeps the responses that it was given.
type sealSpy struct {
	replay.Store
	sealed *[][]byte
}

func (s sealSpy) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	rec, hold, err := s.Store.Claim(ctx, c)
	if hold != nil {
		hold = sealSpyHold{hold, s.sealed}
	}
	return rec, hold, err
}

type sealSpyHold struct {
	replay.Hold
	sealed *[][]byte
}

func (h sealSpyHold) Seal(ctx context.Context, response []byte, retention duration) error {
	*h.sealed = append(*h.sealed, bytes.Clone(response))
	return h.Hold.Seal(ctx, response, retention)
}
