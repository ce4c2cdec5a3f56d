package token

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
)

// MinKeyLen is the length of the shortest key that [NewKeyring] takes, in
// bytes. It is the output length of SHA-256, below which RFC 2104 (section 3)
// discourages keys of its HMAC.
const MinKeyLen = 32

// keyIDLen is how many bytes of a token name the key that signed it.
const keyIDLen = 3

// A Keyring holds the keys that sign and verify tokens. It does not change and
// is safe for concurrent use.
type Keyring struct {
	keys []*key // the newest first
}

// NewKeyring returns a ring that signs with newest and verifies with every key
// of it. A key is at least [MinKeyLen] bytes from a source of randomness, such
// as crypto/rand; a password is none. NewKeyring copies the keys. Its error
// names everything that is wrong with them.
//
// To change the key of several processes without refusing a token that is out
// on a page:
//
//  1. Give every process the new key as an older one, so that all can verify it.
//  2. Then make it the newest everywhere, with the old key among the older ones.
//  3. Drop the old key when the last of its tokens is of no more use: they can
//     claim until they expire, twice [Config.TTL] at most, and are answered with
//     the first response for as long as replay.Config.Retention keeps it.
func NewKeyring(newest []byte, older ...[]byte) (*Keyring, error) {
	var ring Keyring
	var problems []error
	for i, secret := range append([][]byte{newest}, older...) {
		switch {
		case len(secret) < MinKeyLen:
			problems = append(problems, fmt.Errorf("token: NewKeyring: %s has %d bytes, want at least %d", keyName(i), len(secret), MinKeyLen))
			continue
		case len(bytes.Trim(secret, "\x00")) == 0:
			problems = append(problems, fmt.Errorf("token: NewKeyring: %s is all zero bytes, want random ones", keyName(i)))
			continue
		}
		k := newKey(secret)
		for _, other := range ring.keys {
			if other.id != k.id {
				continue
			}
			if bytes.Equal(other.secret, k.secret) {
				problems = append(problems, fmt.Errorf("token: NewKeyring: %s is in the ring already", keyName(i)))
			} else {
				problems = append(problems, fmt.Errorf("token: NewKeyring: %s has the same id, %x, as another key of the ring; draw a new one", keyName(i), k.id))
			}
			break
		}
		ring.keys = append(ring.keys, k)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return &ring, nil
}

func keyName(i int) string {
	if i == 0 {
		return "the newest key"
	}
	return fmt.Sprintf("older key %d", i)
}

// newest returns the key that signs.
func (r *Keyring) newest() *key { return r.keys[0] }

// find returns the key of that id, or nil.
func (r *Keyring) find(id [keyIDLen]byte) *key {
	for _, k := range r.keys {
		if k.id == id {
			return k
		}
	}
	return nil
}

// A key is one secret and the hash states that were keyed with it. Keying costs
// as much as verifying a token does, so states are used again.
type key struct {
	id     [keyIDLen]byte
	secret []byte
	signer sync.Pool // of *signer
}

func newKey(secret []byte) *key {
	k := &key{secret: bytes.Clone(secret)}
	// Part of a hash of the key is public in every token. That takes nothing from
	// a random key, and tells less of a weak one than the token's MAC does.
	h := sha256.New()
	h.Write([]byte("submitonce key id\x00"))
	h.Write(k.secret)
	copy(k.id[:], h.Sum(nil))
	k.signer.New = func() any { return &signer{hash: hmac.New(sha256.New, k.secret)} }
	return k
}
