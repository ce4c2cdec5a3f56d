package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// What a request waits for is sent here, beneath pgx's own queries: a pgx.Batch
// costs four times the allocations, and these few statements have parameters of
// three types only. The statements are prepared once per connection, unless the
// pool's exec mode, or the experience with a pooler, says that they do not last;
// then each carries its text. In simple-protocol mode all of a call is one text.

// A statement is a text of SQL with its parameters: bytea, bigint or interval.
type statement struct {
	name  string // on the server
	text  string
	types []uint32
}

// newStatement reads the types of the parameters off the text: each $n is
// written $n::type somewhere in it.
func newStatement(text string) *statement {
	sum := sha256.Sum256([]byte(text))
	s := &statement{name: "submitonce_" + hex.EncodeToString(sum[:8]), text: text}
	for n := 1; ; n++ {
		switch p := "$" + strconv.Itoa(n) + "::"; {
		case strings.Contains(text, p+"bytea"):
			s.types = append(s.types, pgtype.ByteaOID)
		case strings.Contains(text, p+"bigint"):
			s.types = append(s.types, pgtype.Int8OID)
		case strings.Contains(text, p+"interval"):
			s.types = append(s.types, pgtype.IntervalOID)
		default:
			return s
		}
	}
}

// bigint is the binary form of a parameter.
func bigint(n int64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(n)) }

// interval is the binary form of a parameter: microseconds, and no days and
// months.
func interval(d time.Duration) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(d.Microseconds()))[:16]
}

// A call is one statement of a round trip.
type call struct {
	*statement
	args [][]byte // binary

	// row, if not nil, is given each row of the result.
	row func(row) error

	tag pgconn.CommandTag // afterwards
}

var binaryFormat = []int16{pgx.BinaryFormatCode} // for all parameters, or all columns

// send runs calls on conn in one round trip, all of them or those before the
// first that fails, and returns which failed. An error that is [errUnsent] means
// that nothing of it has reached the server; only that can be relied on, since
// pgx may say the same of a connection that broke later.
func (t *table) send(ctx context.Context, conn *pgx.Conn, calls ...call) (failed int, err error) {
	return t.sendAs(ctx, conn, t.named(), calls)
}

// named reports whether statements are prepared once per connection.
func (t *table) named() bool {
	return t.mode == pgx.QueryExecModeCacheStatement && !t.unnamed.Load()
}

// sendAs is send by the names of prepared statements, or without.
func (t *table) sendAs(ctx context.Context, conn *pgx.Conn, named bool, calls []call) (failed int, err error) {
	switch {
	case conn.IsClosed():
		return 0, fmt.Errorf("%w: the connection is closed", errUnsent)
	case conn.PgConn().IsBusy():
		return 0, fmt.Errorf("%w: the connection is busy; are there rows that were not closed?", errUnsent)
	case ctx.Err() != nil:
		return 0, fmt.Errorf("%w: %w", errUnsent, context.Cause(ctx))
	case t.mode == pgx.QueryExecModeSimpleProtocol:
		return sendText(ctx, conn, calls)
	}
	var descriptions [6]*pgconn.StatementDescription
	if named {
		for i, c := range calls {
			if descriptions[i], err = conn.Prepare(ctx, c.name, c.text); err != nil {
				return 0, fmt.Errorf("%w: %w", errUnsent, err)
			}
		}
	}
	if len(calls) == 1 {
		var rr *pgconn.ResultReader
		if c := &calls[0]; named {
			rr = conn.PgConn().ExecStatement(ctx, descriptions[0], c.args, binaryFormat, binaryFormat)
		} else {
			rr = conn.PgConn().ExecParams(ctx, c.text, c.args, c.types, binaryFormat, binaryFormat)
		}
		return 0, calls[0].read(conn, rr)
	}
	b := &pgconn.Batch{}
	for i, c := range calls {
		if named {
			b.ExecStatement(descriptions[i], c.args, binaryFormat, binaryFormat)
		} else {
			b.ExecParams(c.text, c.args, c.types, binaryFormat, binaryFormat)
		}
	}
	return readAll(conn, conn.PgConn().ExecBatch(ctx, b), calls)
}

// isPooled reports whether a pooler stands between conn and the server's process
// pid, so that each transaction may have another session: a pooler tells its
// clients numbers of its own instead of the process's.
func isPooled(conn *pgx.Conn, pid int32) bool { return conn.PgConn().PID() != uint32(pid) }

// errUnsent means that no call was sent.
var errUnsent = errors.New("not sent")

// read consumes the result of c.
func (c *call) read(conn *pgx.Conn, rr *pgconn.ResultReader) (err error) {
	for rr.NextRow() {
		if c.row != nil && err == nil {
			err = c.row(row{conn.TypeMap(), rr.FieldDescriptions(), rr.Values()})
		}
	}
	var cerr error
	if c.tag, cerr = rr.Close(); cerr != nil {
		return cerr
	}
	return err
}

// sendText is send in the simple protocol.
func sendText(ctx context.Context, conn *pgx.Conn, calls []call) (failed int, err error) {
	var b strings.Builder
	for _, c := range calls {
		b.WriteString(c.literal())
		b.WriteString(";\n")
	}
	return readAll(conn, conn.PgConn().Exec(ctx, b.String()), calls)
}

// readAll consumes the results of calls.
func readAll(conn *pgx.Conn, mrr *pgconn.MultiResultReader, calls []call) (failed int, err error) {
	for failed = range calls {
		if !mrr.NextResult() {
			break
		}
		if err = calls[failed].read(conn, mrr.ResultReader()); err != nil {
			break
		}
	}
	if cerr := mrr.Close(); err == nil {
		err = cerr
	}
	return failed, err
}

// literal is the statement with its arguments in the text. They are numbers and
// hexadecimal digits, so that nothing has to be quoted.
func (c *call) literal() string {
	text := c.text
	for i := len(c.args); i > 0; i-- { // from the last, so that $1 does not hit $10
		var value string
		switch arg := c.args[i-1]; c.types[i-1] {
		case pgtype.ByteaOID:
			value = `'\x` + hex.EncodeToString(arg) + `'`
		case pgtype.Int8OID:
			value = fmt.Sprintf("(%d)", int64(binary.BigEndian.Uint64(arg))) // -1::bigint is -(1::bigint)
		case pgtype.IntervalOID:
			value = fmt.Sprintf("'%d microseconds'", int64(binary.BigEndian.Uint64(arg)))
		}
		text = strings.ReplaceAll(text, "$"+strconv.Itoa(i)+"::", value+"::")
	}
	return text
}

// A row is a row of a result, valid until the next.
type row struct {
	types  *pgtype.Map
	fields []pgconn.FieldDescription
	values [][]byte
}

// Scan reads the columns into dest.
func (r row) Scan(dest ...any) error {
	if len(dest) != len(r.values) {
		return errors.New("wrong number of columns")
	}
	for i, d := range dest {
		f := r.fields[i]
		if err := r.types.Scan(f.DataTypeOID, f.Format, r.values[i], d); err != nil {
			return err
		}
	}
	return nil
}
