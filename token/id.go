package token

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// An ID tells one submit from every other. It is a UUID of RFC 9562 with the
// time in front: version 7, drawn at random, for a fresh token, and version 8,
// computed from the names that it stands for, for an instance token.
type ID [16]byte

const (
	idTimeLen = 6 // bytes of big-endian Unix milliseconds in front of an ID

	idFresh    = 0x70 // the version nibble of a UUIDv7
	idInstance = 0x80 // the version nibble of a UUIDv8
)

// freshID draws a UUIDv7: the time and 74 random bits.
func freshID(now time.Time) ID {
	var id ID
	rand.Read(id[idTimeLen:]) // never fails: it ends the program instead
	id.stamp(now.UnixMilli(), idFresh)
	return id
}

// stamp writes the time, the version and the variant over what id holds there.
func (id *ID) stamp(ms int64, version byte) {
	id[0], id[1], id[2] = byte(ms>>40), byte(ms>>32), byte(ms>>24)
	id[3], id[4], id[5] = byte(ms>>16), byte(ms>>8), byte(ms)
	id[6] = id[6]&0x0f | version
	id[8] = id[8]&0x3f | 0x80
}

// millis returns the time in front of the ID in Unix milliseconds.
func (id ID) millis() int64 {
	return int64(id[0])<<40 | int64(id[1])<<32 | int64(id[2])<<24 |
		int64(id[3])<<16 | int64(id[4])<<8 | int64(id[5])
}

// Time returns the time in the ID, to the millisecond and in UTC: when a fresh
// token was issued, or when the period began in which an instance token was.
func (id ID) Time() time.Time {
	return time.UnixMilli(id.millis()).UTC()
}

// Instance reports whether the ID is that of an instance token.
func (id ID) Instance() bool {
	return id[6]&0xf0 == idInstance
}

// AppendKey appends the 32 lower-case hexadecimal digits under which records
// are kept, and returns the extended slice. For a fresh token they are the ID,
// so that their order is that of time. For an instance token the time, which
// are the first 12 digits, reads as zero, so that the same instance has the same
// record for as long as one stands, whenever its token was issued.
func (id ID) AppendKey(b []byte) []byte {
	if id.Instance() {
		clear(id[:idTimeLen])
	}
	return hex.AppendEncode(b, id[:])
}

// String returns the ID in the form of a UUID. It may be logged: without the
// MAC nobody can make a token of it.
func (id ID) String() string {
	b := make([]byte, 0, 36)
	b = append(hex.AppendEncode(b, id[0:4]), '-')
	b = append(hex.AppendEncode(b, id[4:6]), '-')
	b = append(hex.AppendEncode(b, id[6:8]), '-')
	b = append(hex.AppendEncode(b, id[8:10]), '-')
	return string(hex.AppendEncode(b, id[10:16]))
}
