// Package tieredstore puts a fast store before a durable one, such as Redis
// before PostgreSQL, for high traffic: finished records are answered by the
// front in one round trip, and everything else is decided by the back.
//
//	front, err := redisstore.New(client, redisstore.Config{})
//	back, err := pgstore.New(pool, pgstore.Config{})
//	store, err := tieredstore.New(front, back, tieredstore.Config{})
//	if err != nil { … }
//	defer store.Close() // front and back stay open
//	guard, err := replay.New(store, replay.Config{Tokens: tokens})
//
// The front only saves work. It may be dead, hanging, emptied, evicting, or fail
// over and lose what it had: the unique key of the back still decides. If the
// back is transactional, so is the whole.
//
// # Who is believed
//
//	front says   what happens
//	----------   ------------------------------------------------------------
//	done         answered: it is written only after the back's seal
//	pending      the back is asked, and decides; a pending front may be stale
//	free         taken, and the back is asked, and decides
//	an error     the back is asked, and decides
//
//	back decides   and the front
//	------------   ----------------------------------------------------------
//	won            is pending for the same owner, and sealed after the back
//	pending        stays pending until its lease ends, if it was taken: nobody
//	               believes it, and whoever asks again seals it when the back is done
//	done           is sealed with the back's response, if it was taken
//	an error       stays pending until its lease ends, if it was taken
//
// After some errors in a row the front is left alone for a while, and then tried
// with one call.
package tieredstore
