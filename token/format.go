package token

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"hash"
)

const (
	// Len is the length of every token, in characters.
	Len = 48

	version = 1

	// Where the parts of a token start.
	keyIDAt = 1
	idAt    = keyIDAt + keyIDLen
	macAt   = idAt + 16
	rawLen  = macAt + macLen

	// macLen is half of what HMAC-SHA-256 gives, the least that RFC 2104
	// (section 5) recommends to keep of it.
	macLen = 16
)

// raw is a token before it is encoded. 36 bytes are exactly 48 characters of
// base64, so there are no spare bits and no padding, and one token has one
// spelling only.
type raw [rawLen]byte

func (t *raw) keyID() [keyIDLen]byte { return [keyIDLen]byte(t[keyIDAt:idAt]) }
func (t *raw) id() ID                { return ID(t[idAt:macAt]) }

// sign returns the token of id, signed with k.
func sign(k *key, id ID, form, subject string) string {
	var t raw
	t[0] = version
	copy(t[keyIDAt:], k.id[:])
	copy(t[idAt:], id[:])
	mac := k.mac(&t, form, subject)
	copy(t[macAt:], mac[:])

	var text [Len]byte
	base64.RawURLEncoding.Encode(text[:], t[:])
	return string(text[:])
}

// parse decodes value and reports whether it has the form of a token.
func parse(value string) (t raw, ok bool) {
	if len(value) != Len {
		return t, false
	}
	var text [Len]byte
	copy(text[:], value)
	// The decoder skips line breaks, so that a text with one in it comes out short.
	n, err := base64.RawURLEncoding.Decode(t[:], text[:])
	return t, err == nil && n == rawLen && t[0] == version
}

// verify reports whether k signed t for form and subject.
func verify(k *key, t *raw, form, subject string) bool {
	mac := k.mac(t, form, subject)
	return subtle.ConstantTimeCompare(mac[:], t[macAt:]) == 1
}

// A signer is a keyed hash with the memory that it works in. The buffer holds
// the input of nearly every token, which then is hashed in one piece; it is
// here because what is passed to an interface's method does not stay on the stack.
type signer struct {
	hash hash.Hash
	buf  [256]byte
	sum  [sha256.Size]byte
}

// mac returns the MAC over everything in front of it in t, form and subject.
func (k *key) mac(t *raw, form, subject string) [macLen]byte {
	s := k.signer.Get().(*signer)
	defer k.signer.Put(s)
	s.hash.Reset()
	b := append(s.buf[:0], "submitonce token\x00"...)
	b = append(b, t[:macAt]...)
	b = s.write(b, form)
	b = s.write(b, subject)
	s.hash.Write(b)
	sum := s.hash.Sum(s.sum[:0])
	return [macLen]byte(sum)
}

// write adds the length of text and then text to the input, of which b, a piece
// of s.buf, has not been hashed yet, and returns what is left to be hashed. The
// length keeps ("ab", "c") and ("a", "bc") apart.
func (s *signer) write(b []byte, text string) []byte {
	if len(b)+binary.MaxVarintLen64 > len(s.buf) {
		s.hash.Write(b)
		b = s.buf[:0]
	}
	b = binary.AppendUvarint(b, uint64(len(text)))
	for {
		n := copy(s.buf[len(b):], text)
		b, text = s.buf[:len(b)+n], text[n:]
		if text == "" {
			return b
		}
		s.hash.Write(b)
		b = s.buf[:0]
	}
}
