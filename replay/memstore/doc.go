// Package memstore keeps records in the memory of one process. It is the
// embedded default, and right for one process and for tests; two processes know
// nothing of each other's records, and a restart forgets them all.
//
//	store, err := memstore.New(memstore.Config{})
//	if err != nil { … }
//	defer store.Close()
//	guard, err := replay.New(store, replay.Config{Tokens: tokens})
//
// The store is bounded and never drops a record before its time: when it is
// full, it refuses new claims with [replay.ErrStoreFull], which a guard answers
// with 503. Claims that stand are sealed all the same, and duplicates get their
// replays. Expired records are reclaimed soon after their end, with or without
// traffic, a few at a time.
//
// The file to read first is memstore.go; shard.go has the records, expiry.go
// their ends.
package memstore
