package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed migrations
var migrationFiles embed.FS

// Migrations returns the schema as files for those whose migrations are run by
// a tool: "goose" for pressly/goose, "migrate" for golang-migrate/migrate. Atlas
// reads both. They make the plain table with the default name in the first schema
// of the search path; everybody else calls [Migrate]. It returns an error for
// any other tool.
func Migrations(tool string) (fs.FS, error) {
	dir, err := fs.Sub(migrationFiles, "migrations/"+tool)
	if err == nil {
		_, err = fs.Stat(dir, ".")
	}
	if err != nil {
		return nil, fmt.Errorf("pgstore: no migrations for %q: %w", tool, err)
	}
	return dir, nil
}

// Migrate makes the schema and the table that c names, unless they are there. It
// may be called at each start, by any number of processes at once: they take
// turns. Where the table exists, it needs no right to create one.
func Migrate(ctx context.Context, pool *pgxpool.Pool, c Config) error {
	t := new(table)
	if err := t.open(pool, c); err != nil {
		return err
	}
	err := t.do(ctx, "migrate", func(conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::bigint)", t.args(lock("submitonce migrate ", ""))...)
			if err != nil {
				return err
			}
			return t.create(ctx, tx)
		})
	})
	if err != nil || t.cfg.Partition == 0 {
		return err
	}
	return t.rotate(ctx)
}

// create makes what is not there. Nobody else does so at the same time.
func (t *table) create(ctx context.Context, tx pgx.Tx) error {
	var kind *string // r: a table, p: a partitioned one
	err := tx.QueryRow(ctx, "SELECT (SELECT relkind::text FROM pg_class WHERE oid = to_regclass($1::text))",
		t.args(t.cfg.relation(""))...).Scan(&kind)
	if err != nil {
		return err
	}
	partitioned := t.cfg.Partition > 0
	switch {
	case kind == nil:
		// It is not there, and neither may its schema be.
	case *kind == "r" && partitioned:
		return errors.New("the table exists without partitions; give it another name or Config.Partition 0")
	case *kind == "p" && !partitioned:
		return errors.New("the table exists with partitions; set Config.Partition")
	default:
		return nil
	}
	if t.cfg.Schema != "" {
		var there bool
		err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1::text)",
			t.args(t.cfg.Schema)...).Scan(&there)
		if err != nil {
			return err
		}
		if !there {
			if _, err := tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{t.cfg.Schema}.Sanitize()); err != nil {
				return err
			}
		}
	}
	layout := " WITH (fillfactor = 90)"
	if partitioned {
		layout = " PARTITION BY RANGE (key)"
	}
	if _, err := tx.Exec(ctx, strings.Replace(t.text("table"), "{layout}", layout, 1)); err != nil {
		return err
	}
	if !partitioned {
		return nil
	}
	for _, suffix := range otherPartitions {
		_, err := tx.Exec(ctx, fmt.Sprintf("CREATE TABLE %s PARTITION OF %s %s WITH (fillfactor = 90)",
			t.cfg.relation(suffix), t.cfg.relation(""), otherBounds[suffix]))
		if err != nil {
			return err
		}
	}
	return nil
}
