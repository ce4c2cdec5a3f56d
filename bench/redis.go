package main

import (
	"context"
	"fmt"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/redisstore"
)

func (s *servers) openRedis(at address) opener {
	return func(ctx context.Context) (replay.Store, func(), error) {
		client, err := s.client(ctx, at)
		if err != nil {
			return nil, nil, err
		}
		store, err := redisstore.New(client, redisstore.Config{Prefix: named("r") + ":"})
		if err != nil {
			return nil, nil, err
		}
		return store, func() { _ = store.Close(); _ = client.Close() }, nil
	}
}

// What a store in Redis cannot do without.
const (
	redisWritesName = "SET NX, then SET"
	redisReadsName  = "GET"
)

func (s *servers) redisWrites(at address) Contender {
	return Contender{Name: redisWritesName, Open: func(ctx context.Context, _ int) (opened, error) {
		client, err := s.client(ctx, at)
		if err != nil {
			return opened{}, err
		}
		prefix := named("f") + ":"
		return opened{same(func(i int) error {
			c := claimOf(i)
			if err := client.SetNX(ctx, prefix+c.Key, c.Owner[:], 90*time.Second).Err(); err != nil {
				return err
			}
			return client.Set(ctx, prefix+c.Key, record, retention).Err()
		}), func() { _ = client.Close() }}, nil
	}}
}

func (s *servers) redisReads(at address) Contender {
	return Contender{Name: redisReadsName, Open: func(ctx context.Context, _ int) (opened, error) {
		client, err := s.client(ctx, at)
		if err != nil {
			return opened{}, err
		}
		prefix, next := named("f")+":", sealedKeys()
		return opened{func() (op, error) {
			sealed := next()
			return func(int) error {
				got, err := client.Get(ctx, prefix+claimOf(sealed).Key).Bytes()
				if err == nil && len(got) != len(record) {
					err = fmt.Errorf("GET: %d bytes", len(got))
				}
				return err
			}, client.Set(ctx, prefix+claimOf(sealed).Key, record, retention).Err()
		}, func() { _ = client.Close() }}, nil
	}}
}
