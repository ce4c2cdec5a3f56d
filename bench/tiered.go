package main

import (
	"context"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/tieredstore"
)

func (s *servers) openTiered(redis, postgres address) opener {
	return func(ctx context.Context) (replay.Store, func(), error) {
		front, closeFront, err := s.openRedis(redis)(ctx)
		if err != nil {
			return nil, nil, err
		}
		back, closeBack, err := s.openPostgres(postgres)(ctx)
		if err != nil {
			return nil, nil, err
		}
		store, err := tieredstore.New(front, back, tieredstore.Config{})
		if err != nil {
			return nil, nil, err
		}
		return store, func() { _ = store.Close(); closeBack(); closeFront() }, nil
	}
}
