package pgstore

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// DefaultTable is the name of the table if [Config.Table] is empty.
const DefaultTable = "submitonce"

// maxTable leaves room in an identifier for the suffix of a partition.
const maxTable = 63 - len("_2006010215_2006010215")

// A Config says where the records are. Its zero value is right for most: the
// table "submitonce" in the first schema of the search path. Everything that
// uses one table, in whatever mode, must be given the same Schema and Table.
type Config struct {
	// Schema holds the table. It may have any characters but NUL. The default is
	// the first schema of the connection's search_path.
	Schema string

	// Table is the name of the table, of at most 41 bytes. It may have any
	// characters but NUL. The default is [DefaultTable].
	Table string

	// Partition lays the table out in partitions that hold the tokens issued in
	// one such span of time and are dropped whole when all their records have
	// expired. It is a whole number of hours; 24 hours suits most. It counts when
	// [Migrate] creates the table, and must not change afterwards. The default is
	// 0: one plain table.
	Partition time.Duration

	// NoListen says that LISTEN cannot work, because the pool's connections go
	// through a pooler that hands out a server connection per transaction. Waiters
	// are then woken by polling. If it is false and LISTEN turns out to be deaf,
	// the store says so once in the log, and polls.
	NoListen bool

	// Logger hears what an operator must know. The default is slog.Default().
	Logger *slog.Logger
}

// withDefaults returns a copy of c without empty fields, or all that is wrong
// with c.
func (c Config) withDefaults() (Config, error) {
	if c.Table == "" {
		c.Table = DefaultTable
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	var errs []error
	if len(c.Table) > maxTable {
		errs = append(errs, fmt.Errorf("pgstore: Config.Table %q is longer than %d bytes", c.Table, maxTable))
	}
	if len(c.Schema) > 63 {
		errs = append(errs, fmt.Errorf("pgstore: Config.Schema %q is longer than 63 bytes", c.Schema))
	}
	if strings.ContainsRune(c.Table+c.Schema, 0) {
		errs = append(errs, fmt.Errorf("pgstore: Config.Schema %q or Table %q has a NUL byte", c.Schema, c.Table))
	}
	if c.Partition < 0 || c.Partition%time.Hour != 0 {
		errs = append(errs, fmt.Errorf("pgstore: Config.Partition %v is not a whole number of hours", c.Partition))
	}
	return c, errors.Join(errs...)
}

// relation returns the quoted name of the table, or of one that is named after
// it.
func (c Config) relation(suffix string) string {
	if c.Schema == "" {
		return pgx.Identifier{c.Table + suffix}.Sanitize()
	}
	return pgx.Identifier{c.Schema, c.Table + suffix}.Sanitize()
}
