package main

// missed says what a goal that was missed is made of. Its shares are from a profile
// of the first submit on the machine of the committed run:
//
//	go test ./replay -run '^$' -bench FirstSubmit -cpuprofile cpu.out
const missed = `In memory, a first submit's time goes to what it has to do: a sixth to the memory of what is stored and of what the handler
may keep (the request's copy, its context, the response writer), an eighth to the handler itself, a ninth to the claim in the
store, a tenth to the seal with its copy, 9 % to SHA-256 over the content, 8 % each to the token's HMAC and to the clock, 6 % to
locks, 4 % to encoding the record. "The least there is to do" has none of the lease, the waiters, the
bounds and the takeover. A replay has the HMAC, the SHA-256 and a lookup, which together are more than half of it.

Of Redis and PostgreSQL, the lines "by hand" send the same commands without this library, and cost about the same: a seal that
checks its owner needs a script on Redis (Valkey 8.1 and Redis 8.4 have a command for it), and a transaction that is to run
once needs a lock, a read after the lock and a row, which are three statements more for the server, though no round trip.
Of a first submit by lease, the claim is what costs: in pgbench, without fsync, INSERT and UPDATE by key make 5,360 a second with
1 client and 25,700 with 8, and claim and seal 4,720 and 19,700, with or without the seal's look at who waits. The claim alone
makes 8,980 and 34,800 where the INSERT makes 11,300 and 55,900; one that upserts and could not answer a duplicate makes 10,200
and 47,100, one that reads first but could not either 10,000 and 42,100.
What was tried and refused: the lock and the read in one statement read a snapshot older than the lock, and so could run a
handler twice; in a function they cost more than apart; without the read, late duplicates would run; a claim that inserts the
row and a seal that updates it lose 1 to 14 % of the throughput of lock, read and insert.`
