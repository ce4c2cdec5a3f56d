package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A partitioned table has a partition for each span of time that tokens are
// issued in, which begin with "t" and twelve hexadecimal digits of Unix
// milliseconds; one for the keys before those (instance tokens, other kinds of
// key); one for the keys after; and a default for tokens of spans that have no
// partition, such as very old ones.
const (
	lowPartition  = "_low"
	highPartition = "_high"
	restPartition = "_rest"

	ahead       = 3 // partitions made before their time
	lockTimeout = 50 * time.Millisecond
	hourLayout  = "2006010215"
)

var (
	otherPartitions = []string{lowPartition, highPartition, restPartition}
	otherBounds     = map[string]string{
		lowPartition:  `FOR VALUES FROM (MINVALUE) TO ('\x743031')`, // "t01": November 2004
		highPartition: `FOR VALUES FROM ('\x75') TO (MAXVALUE)`,     // "u"
		restPartition: `DEFAULT`,
	}
)

// A span is the partition of the tokens that were issued in it.
type span struct{ from, to time.Time }

func (s span) suffix() string {
	return "_" + s.from.UTC().Format(hourLayout) + "_" + s.to.UTC().Format(hourLayout)
}

// bound is the least key of a token that was issued at t.
func bound(t time.Time) string { return fmt.Sprintf(`'\x%x'`, fmt.Sprintf("t%012x", t.UnixMilli())) }

// spanOf reads a suffix.
func spanOf(suffix string) (s span, ok bool) {
	from, to, ok := strings.Cut(strings.TrimPrefix(suffix, "_"), "_")
	if !ok {
		return s, false
	}
	var err, err2 error
	s.from, err = time.Parse(hourLayout, from)
	s.to, err2 = time.Parse(hourLayout, to)
	return s, err == nil && err2 == nil
}

// rotate makes the partitions of the present and the next spans, and drops
// those in which everything has expired. What it cannot get a lock for within 50
// ms, it leaves for the next time, so that claims never queue behind it for
// longer.
func (t *table) rotate(ctx context.Context) error {
	now, spans, err := t.spans(ctx)
	if err != nil {
		return err
	}
	length := t.cfg.Partition
	for i := range ahead + 1 {
		from := now.Truncate(length).Add(time.Duration(i) * length)
		if slices.ContainsFunc(spans, func(s span) bool { return !from.Before(s.from) && from.Before(s.to) }) {
			continue
		}
		if err := t.addSpan(ctx, span{from, from.Add(length)}); err != nil {
			return err
		}
	}
	for _, s := range spans {
		if s.to.Before(now) {
			if err := t.dropSpan(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// spans returns the server's time and the spans that have a partition.
func (t *table) spans(ctx context.Context) (now time.Time, spans []span, err error) {
	err = t.do(ctx, "partitions", func(conn *pgxpool.Conn) error {
		spans = nil
		var at int64
		if err := conn.QueryRow(ctx, "SELECT (date_part('epoch', now()) * 1000)::bigint", t.args()...).Scan(&at); err != nil {
			return err
		}
		now = time.UnixMilli(at)
		rows, err := conn.Query(ctx, "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid"+
			" WHERE inhparent = $1::text::regclass", t.args(t.cfg.relation(""))...)
		if err != nil {
			return err
		}
		var name string
		_, err = pgx.ForEachRow(rows, []any{&name}, func() error {
			if s, ok := spanOf(strings.TrimPrefix(name, t.cfg.Table)); ok {
				spans = append(spans, s)
			}
			return nil
		})
		return err
	})
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from.Unix(), b.from.Unix()) })
	return now.UTC(), spans, err
}

// addSpan makes the partition of s, with what the default partition holds of it.
func (t *table) addSpan(ctx context.Context, s span) error {
	var (
		parent = t.cfg.relation("")
		rest   = t.cfg.relation(restPartition)
		part   = t.cfg.relation(s.suffix())
		in     = fmt.Sprintf("key >= %s AND key < %s", bound(s.from), bound(s.to))
	)
	return t.reshape(ctx, "partition added", s, func(tx pgx.Tx) (bool, error) {
		return true, execAll(ctx, tx,
			fmt.Sprintf("LOCK TABLE %s IN ACCESS EXCLUSIVE MODE", rest),
			fmt.Sprintf("CREATE TABLE %s (LIKE %s INCLUDING ALL) WITH (fillfactor = 90)", part, parent),
			fmt.Sprintf("WITH moved AS (DELETE FROM %s WHERE %s RETURNING *) INSERT INTO %s SELECT * FROM moved", rest, in, part),
			fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)", parent, part, bound(s.from), bound(s.to)),
		)
	})
}

// dropSpan drops the partition of s if nothing in it counts any more. It looks
// first without a lock, because that may take a while, and then again with one
// that keeps out whoever would claim in this partition, whose time is long over.
func (t *table) dropSpan(ctx context.Context, s span) error {
	var (
		part = t.cfg.relation(s.suffix())
		look = t.textFor("live", s.suffix())
		live bool
	)
	err := t.do(ctx, "look into partition", func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, look, t.args()...).Scan(&live)
	})
	if err != nil || live {
		return err
	}
	return t.reshape(ctx, "partition dropped", s, func(tx pgx.Tx) (bool, error) {
		if err := execAll(ctx, tx, fmt.Sprintf("LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE", part)); err != nil {
			return false, err
		}
		if err := tx.QueryRow(ctx, look, t.args()...).Scan(&live); err != nil || live {
			return false, err
		}
		return true, execAll(ctx, tx, "DROP TABLE "+part)
	})
}

// reshape runs f in a transaction, one instance at a time and with a bound on
// how long it queues for locks. It leaves it for the next time, without an error,
// if somebody is in the way.
func (t *table) reshape(ctx context.Context, what string, s span, f func(pgx.Tx) (bool, error)) error {
	changed := false
	err := t.do(ctx, what, func(conn *pgxpool.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			var turn bool
			err = execAll(ctx, tx, fmt.Sprintf("SET LOCAL lock_timeout = %d", lockTimeout.Milliseconds()))
			if err == nil {
				err = tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1::bigint)",
					t.args(lock("submitonce reshape ", t.cfg.relation("")))...).Scan(&turn)
			}
			if err != nil || !turn {
				return err
			}
			changed, err = f(tx)
			return err
		})
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "55P03": // lock_not_available
			return nil
		case "42P07", "42P17", "42P01": // another instance has just made or dropped it
			return nil
		}
	}
	if err == nil && changed {
		t.log.LogAttrs(ctx, slog.LevelInfo, "submitonce: "+what, slog.Time("from", s.from), slog.Time("to", s.to))
	}
	return err
}

func execAll(ctx context.Context, tx pgx.Tx, statements ...string) error {
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeExec); err != nil {
			return err
		}
	}
	return nil
}
