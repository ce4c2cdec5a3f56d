package replay

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"fmt"
)

// encryptionKeySize is that of AES-256.
const encryptionKeySize = 32

// A cryptor encrypts sealed responses between the guard and the store, so that
// no store knows of it:
//
//	1 byte    encryptedRecord
//	4 bytes   key id, the start of the key's SHA-256
//	12 bytes  nonce
//	rest      AES-256-GCM, with the record's key as additional data
//
// The record's key is authenticated too, so that nobody who can write to the
// store can pass one record off as another.
type cryptor struct {
	newest keyID
	aeads  map[keyID]cipher.AEAD
}

type keyID [4]byte

// newCryptor returns nil if there are no keys. Their sizes have been checked.
func newCryptor(keys [][]byte) (*cryptor, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	c := &cryptor{aeads: make(map[keyID]cipher.AEAD, len(keys))}
	for i, key := range keys {
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("replay: Config.EncryptionKeys[%d]: %w", i, err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("replay: Config.EncryptionKeys[%d]: %w", i, err)
		}
		sum := sha256.Sum256(key)
		id := keyID(sum[:])
		if _, ok := c.aeads[id]; ok {
			return nil, fmt.Errorf("replay: Config.EncryptionKeys[%d] is there twice", i)
		}
		c.aeads[id] = aead
		if i == 0 {
			c.newest = id
		}
	}
	return c, nil
}

func (c *cryptor) encrypt(key string, plain []byte) []byte {
	aead := c.aeads[c.newest]
	b := make([]byte, 0, 1+len(c.newest)+len(plain)+aead.Overhead())
	b = append(b, encryptedRecord)
	b = append(b, c.newest[:]...)
	return aead.Seal(b, nil, plain, []byte(key))
}

// decrypt returns the plain record. One that was stored before encryption was
// switched on is returned as it is.
func (c *cryptor) decrypt(key string, b []byte) ([]byte, error) {
	if len(b) == 0 || b[0] != encryptedRecord {
		return b, nil
	}
	if c == nil {
		return nil, fmt.Errorf("%w: it is encrypted, and Config.EncryptionKeys is not set", ErrUnreadable)
	}
	if len(b) < 1+len(keyID{}) {
		return nil, fmt.Errorf("%w: cut off", ErrUnreadable)
	}
	aead, ok := c.aeads[keyID(b[1:])]
	if !ok {
		return nil, fmt.Errorf("%w: its key is no longer among Config.EncryptionKeys", ErrUnreadable)
	}
	plain, err := aead.Open(nil, nil, b[1+len(keyID{}):], []byte(key))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return plain, nil
}
