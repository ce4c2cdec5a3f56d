// Package pgstore keeps the records of package replay in PostgreSQL 14 or later,
// so that they outlive the process and are shared by many.
//
//	pool, err := pgxpool.New(ctx, databaseURL)
//	...
//	err = pgstore.Migrate(ctx, pool, pgstore.Config{})     // makes the table, once
//	store, err := pgstore.New(pool, pgstore.Config{})      // by lease, or
//	store, err := pgstore.NewTx(pool, pgstore.TxConfig{})  // in the handler's transaction
//	defer store.Close()
//	go replay.Sweep(ctx, store, 10*time.Minute)            // removes what has expired
//	guard, err := replay.New(store, replay.Config{Tokens: issuer})
//
// # Two modes
//
// A [Store] claims by lease: the claim is a row that is committed at once. The
// handler may do anything, in any system. If its process dies, the next duplicate
// runs when the lease has run out, and what the dead handler had done is done.
//
// A [TxStore] claims inside a transaction, lends it to the handler ([Tx], or [SQL]
// for database/sql, sqlc and GORM), and commits it together with the response. If
// anything dies, all of it is rolled back and the next duplicate runs at once; if
// the answer to COMMIT is lost, the record is read to find out what became of it.
// What the handler does outside that transaction is not covered.
//
// Both use the same table, and may use it at the same time for different keys.
//
// # The database
//
// The role needs SELECT, INSERT, UPDATE and DELETE on the table. Migrate needs the
// right to create it only where it does not exist; see [Migrations] for those
// whose migrations are run by a tool. The table has no index but its primary key:
// with one on the expiry, no seal could be a heap-only update, which made claim
// and seal together a tenth dearer when measured.
//
// All times are the server's: the clocks of the processes do not matter.
// Any default isolation level will do, and any IntervalStyle, DateStyle and
// bytea_output. Serialization failures and deadlocks of
// the store's own statements are repeated inside; those of a handler's transaction
// are [replay.ErrUndone].
//
// # Waiting
//
// A waiter holds no connection of the pool. Waiters of all keys share one
// connection beside the pool, which hears of seals and releases by LISTEN and is
// opened when somebody first waits. NOTIFY takes a lock of the whole database, so
// that it is sent only if somebody waits: for each awaited key, the listening
// session holds a shared advisory lock (up to 128 of them, which matters to
// max_locks_per_transaction only if very many processes wait at once), and whoever
// seals tries the same lock. A poll of all awaited keys in one statement stands
// behind it, every 250 ms.
//
// # Poolers
//
// Behind PgBouncer and the like in transaction mode, set
// default_query_exec_mode=exec (or simple_protocol) in the pool's configuration,
// and [Config.NoListen]. If you don't, the stores notice both, say so once in the
// log, and go on: without prepared statements, and with waiters that poll every 10
// to 100 ms.
//
// # Retention
//
// Expired records count as none at once, and are removed by Sweep, in batches
// with pauses. Where that is too slow, [Config.Partition] lays the table out in
// partitions by the time of the token, which Sweep makes ahead and drops whole.
// The key stays unique, because it is what the table is partitioned by. Records
// under other keys than submit tokens, and under instance tokens, are swept in
// batches there too. Transactions that last hold up the drop of a partition; Sweep
// queues for the lock for 50 ms at most and then leaves it for the next time.
//
// Getting rid of 5,000,000 records with responses of 300 bytes, PostgreSQL 15
// (BenchmarkRetention in this package's tests, which says how to run it):
//
//	                     busy     with pauses   write-ahead log   left on disk
//	batches of 1,000     13.6 s   264 s         2,676 MB          2,843 MB, for VACUUM to free
//	drop of a partition  2.1 s    2.1 s         0.07 MB           0.1 MB
//
// # Cost
//
// A first submit is two round trips by lease; in a transaction it is none beyond
// BEGIN, the handler's own, and COMMIT. A duplicate of a finished submit is one;
// in a transaction it is two in a process that sees it for the first time.
package pgstore
