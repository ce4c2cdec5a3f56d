package redisstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/submitonce/submitonce/replay"
)

const (
	pendingMark = 'P'
	doneMark    = 'D'
	headSize    = 1 + len(replay.Owner{}) + 4

	// grace is how long an abandoned claim is kept for its attempt.
	grace = time.Minute
)

// A head is the beginning of a record, and all of a pending one: its mark, owner
// and attempt.
type head [headSize]byte

func pendingHead(owner replay.Owner, attempt int) (h head) {
	h[0] = pendingMark
	copy(h[1:], owner[:])
	binary.BigEndian.PutUint32(h[headSize-4:], uint32(attempt))
	return h
}

// sealed returns the done record with response.
func (h head) sealed(response []byte) []byte {
	h[0] = doneMark
	return append(append(make([]byte, 0, headSize+len(response)), h[:]...), response...)
}

func ownedBy(stands []byte, owner replay.Owner) bool {
	return bytes.Equal(stands[1:headSize-4], owner[:])
}

// decode reads a record with its life left in ms. The response is a part of
// stands.
func decode(stands []byte, left int64) (replay.Record, error) {
	if len(stands) < headSize {
		return replay.Record{}, fmt.Errorf("a record of %d bytes: something else has written to its key", len(stands))
	}
	rec := replay.Record{Attempt: int(binary.BigEndian.Uint32(stands[headSize-4:]))}
	switch stands[0] {
	case doneMark:
		rec.State, rec.Response = replay.Done, stands[headSize:]
	case pendingMark:
		rec.State, rec.LeaseLeft = replay.Pending, time.Duration(left)*time.Millisecond-grace
	default:
		return rec, errors.New("a record that is neither pending nor done: something else has written to its key")
	}
	return rec, nil
}

// name returns the key in Redis. Braces are replaced, so that no client's key has
// a say in the slot.
func (s *Store) name(key string) string {
	if !strings.ContainsAny(key, "{}") {
		return s.c.Prefix + key
	}
	return s.c.Prefix + braces.Replace(key)
}

// Keys are printable ASCII, so that these two stand for nothing else.
var braces = strings.NewReplacer("{", "\x01", "}", "\x02")

// millis rounds up, so that nothing ends early and no life is 0, which Redis
// would refuse.
func millis(d time.Duration) int64 {
	return max((d + time.Millisecond - 1).Milliseconds(), 1)
}
