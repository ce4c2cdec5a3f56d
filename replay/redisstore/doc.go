// Package redisstore keeps records in Redis or Valkey, for many instances: a
// single server, Sentinel or Cluster, through go-redis.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
//	store, err := redisstore.New(client, redisstore.Config{})
//	if err != nil { … }
//	defer store.Close()
//	guard, err := replay.New(store, replay.Config{Tokens: tokens})
//
// A first submit costs two round trips, a duplicate one. A record is one string
// under one key, written in one command together with its time to live:
//
//	1 byte    'P' pending or 'D' done
//	16 bytes  owner
//	4 bytes   attempt, big endian
//	rest      response
//
// A seal writes only over its own pending record: by SET … IFEQ where the server
// has it (Valkey 8.1, Redis 8.4), which costs what a plain SET costs, and else by a
// script.
//
// A pending record lives for its lease and a minute more, in which a takeover
// can count the attempts on; the lease has run out when a minute is left. So
// only the clock of Redis counts.
//
// # What it does not guarantee
//
// Redis keeps its promises for as long as it keeps its data. Replication is
// asynchronous: a fail-over may lose the last writes, and a token whose record is
// lost runs again. [Config.Replicas] narrows that; it does not close it. An
// evicting maxmemory-policy drops records before their time: use noeviction, with
// which a full server refuses new claims while it still takes the outcomes of
// running ones. (A server before Redis 7 cannot: there the claim of an outcome that
// did not fit stands for the whole retention, so that nothing runs twice, and
// duplicates wait in vain.) Where effects matter, put this store before PostgreSQL
// with package tieredstore.
package redisstore
