// Package sqlitestore keeps records in a SQLite file: the durable choice for one
// machine that runs no server. It is pure Go. Several processes may share the
// file; a small site survives restarts and kill -9.
//
//	db, err := sqlitestore.Open("/var/lib/shop/shop.db")
//	if err != nil { … }
//	defer db.Close()
//	store, err := sqlitestore.New(ctx, db)
//	if err != nil { … }
//	guard, err := replay.New(store, replay.Config{Tokens: tokens})
//	go replay.Sweep(ctx, store, 10*time.Minute)
//
// The application may keep its own tables in the same file. The file is in WAL
// mode with synchronous=FULL: what is sealed survives the loss of power, which
// costs a sync of the disk for each claim and each seal.
//
// Time is that of the machine's clock, which all processes on it share. A clock
// that is set back lengthens leases and retentions, and shortens none.
package sqlitestore
