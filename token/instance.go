package token

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// IssueInstance returns the token of one thing that is to be submitted once,
// such as a cart: the same subject gets the same token for the same form and
// instance in every tab and after every refresh, so that the cart is ordered
// once however often its page was opened.
//
// The token changes after each [Config.TTL] and when the newest key does, and
// what records are kept under ([ID.AppendKey]) changes with neither, so that an
// old and a new token of one instance are the same submit. It expires at the end
// of the period that follows the one it was issued in, so it has one to two times
// the TTL to live.
//
// An instance is told from others of the same form and subject by 74 bits of a
// hash. Whoever is the same subject can have the token: with the subject "" that
// is everybody who knows the instance's name.
func (i *Issuer) IssueInstance(form, subject, instance string) Token {
	return i.token(instanceID(time.Now(), i.ttl, form, subject, instance), form, subject)
}

// instanceID returns a UUIDv8: the start of the current period, and a hash of
// the names. The hash is not keyed, because the record must not change with the
// key, and need not be, because the MAC keeps anybody from making tokens up.
func instanceID(now time.Time, ttl time.Duration, form, subject, instance string) ID {
	b := make([]byte, 0, 256)
	b = append(b, "submitonce instance\x00"...)
	for _, name := range [...]string{form, subject, instance} {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
	}
	sum := sha256.Sum256(b)

	var id ID
	copy(id[idTimeLen:], sum[:])
	ms := now.UnixMilli()
	id.stamp(ms-ms%ttl.Milliseconds(), idInstance)
	return id
}
