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
// with 503. Expired records are reclaimed without traffic, a part of the store at
// a time.
package memstore
