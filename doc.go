// Package submitonce is the front page of a library that makes web forms safe to
// submit twice. It holds no code; these packages do:
//
//   - [github.com/submitonce/submitonce/token] issues and verifies submit tokens,
//     one for each form that a page shows, and serves the browser client;
//   - [github.com/submitonce/submitonce/replay] is the guard: it claims a token's
//     key, runs the handler once, and answers every duplicate with the first
//     response;
//   - [github.com/submitonce/submitonce/middleware/nethttp],
//     [github.com/submitonce/submitonce/middleware/gin],
//     [github.com/submitonce/submitonce/middleware/echo] and
//     [github.com/submitonce/submitonce/middleware/echo5] mount it;
//   - [github.com/submitonce/submitonce/replay/memstore] and its sisters keep the
//     records: in memory, Redis, PostgreSQL, SQLite, or in two tiers;
//   - [github.com/submitonce/submitonce/submittest] is for your own tests.
//
// The words, which mean the same everywhere: a submit token names one submit of
// one form. A key is what its record is stored under. A claim is the atomic step
// that makes one request the owner of a key; it stands for a lease. The owner
// ends it with a seal, which stores the response for as long as retries may come,
// or with a release, after which a retry may run. A fingerprint tells whether two
// requests are the same. A replay is the stored response, answered without running
// the handler.
//
// The README has a program to start from: https://github.com/submitonce/submitonce
package submitonce
