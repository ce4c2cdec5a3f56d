package pgstore

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

// sweepBlocks is how much of the table one statement reads at most: 128 MiB.
const sweepBlocks = 16384

// A sweeper remembers how far it has come, so that batches that follow each other
// do not start at the beginning of the table each time.
type sweeper struct {
	mu   sync.Mutex
	from map[string]int64 // block to go on at, by suffix; guarded by mu

	// A run is the calls up to one that finds no more. Guarded by mu.
	running bool
	run     int // removed in it
}

// Sweep implements [replay.Sweeper]. It reads the table in the order in which it
// lies on disk, without an index, because any index that finds expired records
// would make each seal dearer; a run to the end, on which Sweep returns less than
// limit, reads the whole table once. Every ten minutes is often enough. Only one
// instance sweeps at a time: while another is at it, Sweep leaves it to that one
// and returns 0.
//
// With [Config.Partition], Sweep also makes the partitions of the days to come,
// and drops those in which everything has expired, which does not count towards
// the result. The others are swept only where they hold no tokens of a time: what
// has expired among records of a partition that still has live ones goes with it.
func (t *table) Sweep(ctx context.Context, limit int) (removed int, err error) {
	if limit <= 0 {
		return 0, nil
	}
	t.sweeper.mu.Lock()
	defer t.sweeper.mu.Unlock()
	suffixes := []string{""}
	if t.cfg.Partition > 0 {
		if !t.sweeper.running {
			if err := t.rotate(ctx); err != nil {
				return 0, err
			}
		}
		suffixes = otherPartitions
	}
	for _, suffix := range suffixes {
		n, err := t.sweepOne(ctx, suffix, limit-removed)
		removed += n
		t.sweeper.run += n
		t.sweeper.running = err == nil && removed >= limit
		if err != nil || removed >= limit {
			t.log.LogAttrs(ctx, slog.LevelDebug, "submitonce: sweeping", slog.Int("removed", t.sweeper.run))
			return removed, err
		}
	}
	if t.sweeper.run > 0 {
		t.log.LogAttrs(ctx, slog.LevelInfo, "submitonce: expired records removed", slog.Int("removed", t.sweeper.run))
		t.sweeper.run = 0
	}
	return removed, nil
}

// sweepOne sweeps one relation from where the last batch left off to where it
// began, until limit records are removed.
func (t *table) sweepOne(ctx context.Context, suffix string, limit int) (removed int, err error) {
	var size int64
	err = t.do(ctx, "sweep", func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx,
			"SELECT pg_relation_size($1::text::regclass) / current_setting('block_size')::bigint",
			t.args(t.cfg.relation(suffix))...).Scan(&size)
	})
	if err != nil {
		return 0, err
	}
	var (
		statement = t.textFor("sweep", suffix)
		turn      = lock("submitonce sweep ", t.cfg.relation(""))
		start     = min(t.sweeper.from[suffix], size)
		wrapped   = start == 0
	)
	for at := start; ; {
		end := min(at+sweepBlocks, size)
		if wrapped && start > 0 {
			end = min(end, start)
		}
		var (
			got  bool
			n    int
			last *string
		)
		if at < end {
			err = t.do(ctx, "sweep", func(conn *pgxpool.Conn) error {
				return conn.QueryRow(ctx, statement,
					t.args(tid(at), tid(end), limit-removed, turn)...).Scan(&got, &n, &last)
			})
			if err != nil || !got {
				return removed, err
			}
		}
		removed += n
		switch {
		case removed >= limit:
			t.sweeper.from[suffix] = blockOf(last)
			return removed, nil
		case end < size && (!wrapped || end != start):
			at = end
		case !wrapped:
			wrapped, at = true, 0
		default:
			t.sweeper.from[suffix] = 0
			return removed, nil
		}
	}
}

// tid is where a block begins, as the server writes the place of a row.
func tid(block int64) string { return fmt.Sprintf("(%d,0)", block) }

func blockOf(tid *string) int64 {
	if tid == nil {
		return 0
	}
	block, _, _ := strings.Cut(strings.TrimPrefix(*tid, "("), ",")
	n, err := strconv.ParseInt(block, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
