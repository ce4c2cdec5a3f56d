package pgstore

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// A table is what the modes share: one table of records and the way to it.
type table struct {
	pool    *pgxpool.Pool
	cfg     Config
	log     *slog.Logger
	channel string // of LISTEN and NOTIFY
	claimed string // prefix of what is hashed to the lock that an open transaction holds
	marked  string // prefix of what is hashed to the lock that waiters share

	mode pgx.QueryExecMode // of the pool

	// unnamed says that the server forgets prepared statements between two calls,
	// as behind a transaction pooler, so that none may be used.
	unnamed atomic.Bool

	look     *statement
	finished *finished

	watches watches
	sweeper sweeper

	life    context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup // goroutines that Close waits for
}

// open prepares t for use. It makes no connection.
func (t *table) open(pool *pgxpool.Pool, c Config) error {
	c, err := c.withDefaults()
	if pool == nil {
		err = errors.Join(errors.New("pgstore: the pool is nil"), err)
	}
	if err != nil {
		return err
	}
	t.pool, t.cfg, t.log = pool, c, c.Logger
	t.mode = pool.Config().ConnConfig.DefaultQueryExecMode
	t.life, t.end = context.WithCancel(context.Background())
	name := c.relation("")
	sum := sha256.Sum256([]byte(name))
	t.channel = "submitonce_" + hex.EncodeToString(sum[:8])
	t.claimed = "submitonce claimed " + name + " "
	t.marked = "submitonce marked " + name + " "
	t.look, t.finished = t.statement("look"), newFinished()
	t.watches.table = t
	t.watches.topics = make(map[string]*topic)
	t.watches.names = make(map[string]*topic)
	t.sweeper.from = make(map[string]int64)
	return nil
}

// Close ends what the store runs in the background and waits for it. Calls that
// are under way come to their end; later ones return [replay.ErrClosed]. It does
// not close the pool. It may be called twice, and never fails.
func (t *table) Close() error {
	t.end()
	t.watches.mu.Lock() // whoever is about to start something has started it, or sees the end
	//lint:ignore SA2001 there is nothing to do but wait
	t.watches.mu.Unlock() //nolint:staticcheck // the same for golangci-lint
	t.running.Wait()
	return nil
}

func (t *table) isClosed() bool { return t.life.Err() != nil }

// statement returns sql/name.sql for this table.
func (t *table) statement(name string) *statement { return newStatement(t.textFor(name, "")) }

// text returns the text of sql/name.sql for this table.
func (t *table) text(name string) string { return t.textFor(name, "") }

// textFor is text for the relation that is named after the table with
// suffix.
func (t *table) textFor(name, suffix string) string {
	text, err := sqlFiles.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // embedded: only a misspelt constant of this package gets here
	}
	return strings.NewReplacer(
		"{table}", t.cfg.relation(suffix),
		"{channel}", t.channel,
	).Replace(withoutComments(string(text)))
}

// withoutComments drops the lines that are comments: the server need not parse
// them each time.
func withoutComments(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return strings.Join(lines, "\n")
}

// standing returns the record under key, or a free one.
func (t *table) standing(ctx context.Context, conn *pgx.Conn, key string) (rec replay.Record, err error) {
	_, err = t.send(ctx, conn, call{statement: t.look, args: [][]byte{[]byte(key)}, row: func(r row) error {
		return scanRecord(r, &rec)
	}})
	return rec, err
}

// replayed returns the record under a key that has been done lately, if that is
// so and it still is.
func (t *table) replayed(ctx context.Context, key string) (rec replay.Record, ok bool, err error) {
	if !t.finished.has(key) {
		return rec, false, nil
	}
	err = t.do(ctx, "claim", func(conn *pgxpool.Conn) (err error) {
		rec, err = t.standing(ctx, conn.Conn(), key)
		return err
	})
	if err == nil && rec.State != replay.Done {
		t.finished.remove(key)
	}
	return rec, rec.State == replay.Done, err
}

// args puts what the execution of a statement needs before its arguments.
func (t *table) args(args ...any) []any {
	if t.unnamed.Load() {
		return append([]any{pgx.QueryExecModeExec}, args...)
	}
	return args
}

// lock returns the number of an advisory lock that belongs to a key. Advisory
// locks are numbers of 64 bits, shared by all users of the database; a hash that
// nobody can aim at makes it safe to let them stand for keys.
func lock(prefix, key string) int64 {
	var buf [512]byte
	sum := sha256.Sum256(append(append(buf[:0], prefix...), key...))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// payload is how a key is called in a notification, which everybody in the
// database can listen to; there in hexadecimal digits.
func payload(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:12]
}

func payloadText(key string) string { return hex.EncodeToString(payload(key)) }
