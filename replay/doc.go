// Package replay makes a handler safe to be submitted to twice. A [Guard] claims
// the key of each request in a [Store], runs the handler once, stores its
// response, and answers every duplicate with that response.
//
//	ring, err := token.NewKeyring(secret)
//	tokens, err := token.New(ring, token.Config{Subject: sessionID})
//	store, err := memstore.New(memstore.Config{})
//	guard, err := replay.New(store, replay.Config{Tokens: tokens})
//
//	mux.Handle("GET /submit-token", tokens.Handler())
//	mux.Handle("POST /orders", nethttp.Middleware(guard)(createOrder))
//
// # The life of a request
//
// [Guard.Serve] reads like this list; start there.
//
//  1. GET, HEAD, OPTIONS and TRACE pass.
//  2. The key is read: a submit token from the header or the hidden form field;
//     else an Idempotency-Key, if [Config.IdempotencyKey] is set; else what
//     [Config.Key] says. A token is verified before any store is asked.
//  3. The key is claimed, atomically, in the store. Duplicates that are in this
//     process at the same time send one of them to ask.
//  4. Whoever wins runs the handler. Its response is held back, sealed under
//     the key, and then sent. An outcome that is none, such as a 422, releases
//     the key instead.
//  5. Whoever finds the key pending waits, and then gets the response, or
//     competes for the key again if it was released.
//  6. Whoever finds the key done gets the response, if the request is the same:
//     the fingerprint over method, target and body decides. Of a body that the
//     handler left unread beyond 256 KiB, nothing is known and nothing compared.
//
// # Two clocks
//
// A claim stands for a lease, which is short and which the owner extends while
// the handler runs. If the owner dies, the next duplicate takes over when the
// lease has run out, and its handler sees [Attempt] 2. A sealed response stands
// for the retention, which is long. A lock is not idempotency: the one is
// against dead owners, the other against late retries.
//
// # When things break
//
//   - The client hangs up: the handler goes on, and its outcome is sealed.
//   - The handler panics: the key is released, and the panic goes on.
//   - The store does not answer a claim: 503, and the handler does not run.
//   - The store does not answer the seal: it is tried again for
//     [Config.SealTimeout]; then the client gets its response all the same, and
//     the log says that a retry may run again.
//   - The process dies between the handler's effect and the seal: a retry runs
//     again, as attempt 2. Write [Key] into a unique column beside the effect, or
//     use a store whose [Lender] puts both into one transaction.
//   - An owner that stood still beyond its lease comes back: its seal is refused,
//     and its client gets the outcome that stands.
//
// # What belongs outside, and what inside
//
// Outside of the guard: authentication, since an answer of it that sends the
// visitor to the login page is not the handler's outcome; compression, since a
// stored response is replayed to clients that accept other encodings; CORS, and
// all that sets headers of its own for each request, which a replay keeps. CORS
// has to allow X-Submit-Token and to expose Idempotent-Replayed, Retry-After and
// Location; [CORSAllowHeaders] and [CORSExposeHeaders] list them.
//
// # Without HTTP
//
// A [Once] does the same for jobs and messages: a key, a function, a stored
// result.
package replay
