package pgstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// In the exec modes that read values as text, settings of the server and the
// role have a say in how they look: IntervalStyle, DateStyle, bytea_output. So
// times are read as numbers, and bytes by this type.

// duration is that of a number of microseconds, which is how the time that a
// record has left is read.
func duration(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Microsecond))) * time.Microsecond
}

// A bytea is a column of that type, read in any of its formats: pgx knows only
// one of the two that are text.
type bytea []byte

// ScanBytes is for the binary format.
func (b *bytea) ScanBytes(src []byte) error {
	*b = bytes.Clone(src)
	return nil
}

var errBytea = errors.New("malformed bytea")

// ScanText is for the text formats (PostgreSQL's manual, section 8.4).
func (b *bytea) ScanText(src pgtype.Text) (err error) {
	switch digits, isHex := strings.CutPrefix(src.String, `\x`); {
	case !src.Valid:
		*b = nil
	case isHex:
		*b, err = hex.DecodeString(digits)
	default:
		*b, err = unescape(src.String)
	}
	return err
}

// unescape reads the format "escape": a backslash is doubled, and what is not
// printable is a backslash and three octal digits.
func unescape(text string) ([]byte, error) {
	b := make([]byte, 0, len(text))
	for {
		plain, rest, more := strings.Cut(text, `\`)
		b = append(b, plain...)
		switch {
		case !more:
			return b, nil
		case strings.HasPrefix(rest, `\`):
			b, text = append(b, '\\'), rest[1:]
		case len(rest) >= 3:
			n, err := strconv.ParseUint(rest[:3], 8, 8)
			if err != nil {
				return nil, errBytea
			}
			b, text = append(b, byte(n)), rest[3:]
		default:
			return nil, errBytea
		}
	}
}
