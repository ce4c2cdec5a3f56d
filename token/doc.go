// Package token issues and verifies submit tokens. A page gets one token when
// it loads, every submit of its form carries it, and package replay runs the
// handler once for each.
//
//	ring, err := token.NewKeyring(secret) // 32 random bytes or more, the same in every process
//	...
//	iss, err := token.New(ring, token.Config{
//		Subject: func(r *http.Request) string { return sessionID(r) },
//	})
//	...
//	mux.Handle("/submit-token", iss.Handler())              // for pages with JavaScript
//	page.Token = iss.Field(w, r, "checkout")                // for forms without
//	guard, err := replay.New(store, replay.Config{Tokens: iss, Forms: []string{"checkout"}})
//
// # What a token is
//
// A token is 48 characters of base64url, which are 36 bytes:
//
//	version, 1 byte | key id, 3 bytes | ID, 16 bytes | MAC, 16 bytes
//
// The [ID] tells submits apart. The MAC is HMAC-SHA-256, cut to 128 bits, over
// all that stands before it, the form's name and the subject that the token was
// issued to, so that a token is good for one form and one subject. Nothing is
// stored when a token is issued, so asking for tokens fills nothing up.
//
// # What a token is not
//
// A token proves that this site issued it for this form and this subject, and no
// more: anybody can draw one. Where [Config.Subject] is not set it is therefore
// no protection against forged cross-site requests.
//
// The first response is replayed to whoever sends its token again as the same
// subject. So a token stays out of logs ([Redact]), and a page that holds one
// stays out of caches, which [Issuer.Field] and [Issuer.Handler] see to.
package token
