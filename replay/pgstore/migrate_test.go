package pgstore_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

func TestMigrateMayRunInManyProcessesAtOnceAndAgain(t *testing.T) {
	for what, c := range map[string]pgstore.Config{"plain": {}, "partitioned": {Partition: 24 * time.Hour}} {
		t.Run(what, func(t *testing.T) {
			pool := newPool(t, serverURL(t), conns(8))
			c.Schema = `odd "schema" ` + rand.Text()
			c.Table = "odd; table"
			t.Cleanup(func() {
				_, err := pool.Exec(context.Background(), "DROP SCHEMA "+pgx.Identifier{c.Schema}.Sanitize()+" CASCADE")
				if err != nil {
					t.Error(err)
				}
			})
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if err := pgstore.Migrate(t.Context(), pool, c); err != nil {
						t.Errorf("migrate: %v", err)
					}
				})
			}
			wg.Wait()
			s := newStore(t, pool, c)
			h := mustClaim(t, s, claimOf("k"))
			if err := h.Seal(t.Context(), nil, time.Hour); err != nil {
				t.Fatal(err)
			}
			if err := pgstore.Migrate(t.Context(), pool, c); err != nil {
				t.Errorf("again: %v", err)
			}
			if rec, err := s.Look(t.Context(), "k"); err != nil || rec.State != replay.Done {
				t.Errorf("after another migration: %+v, %v", rec, err)
			}
			c.Partition = map[time.Duration]time.Duration{0: 24 * time.Hour}[c.Partition]
			if err := pgstore.Migrate(t.Context(), pool, c); err == nil {
				t.Error("a table of the other layout passes")
			}
		})
	}
}

func TestMigrateNeedsNoRightToCreateWhereTheTableExists(t *testing.T) {
	pool := newPool(t, serverURL(t))
	c := newTable(t, pool, pgstore.Config{})
	role := "r" + strings.ToLower(rand.Text())
	for _, sql := range []string{
		"CREATE ROLE " + role,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON " + name(c) + " TO " + role,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Error(err)
		}
	})
	asRole := newPool(t, serverURL(t), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = role })
	if err := pgstore.Migrate(t.Context(), asRole, c); err != nil {
		t.Errorf("migrate: %v", err)
	}
	s := newStore(t, asRole, c)
	if err := mustClaim(t, s, claimOf("k")).Seal(t.Context(), nil, time.Hour); err != nil {
		t.Errorf("seal: %v", err)
	}
	if _, err := s.Sweep(t.Context(), 10); err != nil {
		t.Errorf("sweep: %v", err)
	}
}

func TestExportedMigrationsMakeTheSameTableAsMigrate(t *testing.T) {
	pool := newPool(t, serverURL(t), conns(1))
	columns := func(table string) string {
		return value[string](t, pool, `SELECT string_agg(format('%s %s %s %s', attname, atttypid::regtype, attnotnull, pg_get_expr(adbin, adrelid)), '; ' ORDER BY attnum)
			|| (SELECT format(' %s %s', reloptions, (SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1::text::regclass)) FROM pg_class WHERE oid = $1::text::regclass)
			FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
			WHERE attrelid = $1::text::regclass AND attnum > 0`, table)
	}
	want := columns(name(newTable(t, pool, pgstore.Config{})))
	for tool, files := range map[string][2]string{
		"goose":   {"00001_submitonce.sql", "00001_submitonce.sql"},
		"migrate": {"000001_submitonce.up.sql", "000001_submitonce.down.sql"},
	} {
		t.Run(tool, func(t *testing.T) {
			dir, err := pgstore.Migrations(tool)
			if err != nil {
				t.Fatal(err)
			}
			read := func(i int) string {
				text, err := fs.ReadFile(dir, files[i])
				if err != nil {
					t.Fatal(err)
				}
				if tool == "goose" {
					parts := strings.Split(string(text), "-- +goose Down")
					if len(parts) != 2 || !strings.HasPrefix(parts[0], "-- +goose Up\n") {
						t.Fatalf("%q is not what goose reads", text)
					}
					return parts[i]
				}
				return string(text)
			}
			schema := strings.ToLower("s" + rand.Text())
			for _, sql := range []string{"CREATE SCHEMA " + schema, "SET search_path = " + schema, read(0)} {
				if _, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}
			if got := columns("submitonce"); got != want {
				t.Errorf("table of %s:\n%s\nof Migrate:\n%s", tool, got, want)
			}
			for _, sql := range []string{read(1), "DROP SCHEMA " + schema, "RESET search_path"} {
				if _, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}
		})
	}
	if _, err := pgstore.Migrations("flyway"); err == nil {
		t.Error("migrations for a tool that nobody made any for")
	}
}

func TestConfigurationErrorsAreReportedTogether(t *testing.T) {
	_, err := pgstore.NewTx(nil, pgstore.TxConfig{
		Config:     pgstore.Config{Table: strings.Repeat("t", 42), Schema: "a\x00b", Partition: 90 * time.Minute},
		IsoLevel:   "chaos",
		AccessMode: pgx.ReadOnly,
	})
	for _, want := range []string{"pool is nil", "Config.Table", "Config.Schema", "Config.Partition 1h30m0s", "IsoLevel \"chaos\"", "AccessMode \"read only\""} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not mention %q", err, want)
		}
	}
}

func TestPartitionsAreMadeAheadAndDroppedWhenAllInThemHasExpired(t *testing.T) {
	pool := newPool(t, serverURL(t))
	c := newTable(t, pool, pgstore.Config{Partition: 24 * time.Hour})
	s := newStore(t, pool, c)
	partitions := func() int {
		return value[int](t, pool, "SELECT count(*) FROM pg_inherits WHERE inhparent = $1::text::regclass", name(c))
	}
	if n := partitions(); n != 3+4 {
		t.Errorf("%d partitions, want those for other keys and four days", n)
	}
	key := func(at time.Time) string { return fmt.Sprintf("t%012x7abcabcabcabcabcabc.x", at.UnixMilli()) }
	now := time.Now()
	where := func(key string) string {
		return value[string](t, pool, "SELECT replace(tableoid::regclass::text, '\"', '') FROM "+name(c)+" WHERE key = convert_to($1::text, 'UTF8')", key)
	}
	for k, want := range map[string]string{
		key(now):                     "_" + now.UTC().Format("20060102") + "00_" + now.UTC().AddDate(0, 0, 1).Format("20060102") + "00",
		key(time.UnixMilli(0)):       "_low",
		"iabc":                       "_low",
		"zebra":                      "_high",
		key(now.AddDate(0, 0, 40)):   "_rest",
		key(now.AddDate(0, 0, -400)): "_rest",
	} {
		h := mustClaim(t, s, claimOf(k))
		if _, h, err := s.Claim(t.Context(), claimOf(k)); err != nil || h != nil {
			t.Errorf("%s: claimed twice: %v, %v", k, h, err)
		}
		if err := h.Seal(t.Context(), nil, time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := where(k); got != c.Table+want {
			t.Errorf("%s is in %s, want %s", k, got, c.Table+want)
		}
	}

	// A day that is over, in the form that it has eight days later.
	day := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -8)
	old := pgstore.Config{Table: c.Table + "_" + day.Format("2006010215") + "_" + day.AddDate(0, 0, 1).Format("2006010215")}
	_, err := pool.Exec(t.Context(), fmt.Sprintf(`CREATE TABLE %s PARTITION OF %s FOR VALUES FROM ('\x%x') TO ('\x%x')`,
		name(old), name(c), key(day)[:13], key(day.AddDate(0, 0, 1))[:13]))
	if err != nil {
		t.Fatal(err)
	}
	h := mustClaim(t, s, claimOf(key(day.Add(time.Hour))))
	if err := h.Seal(t.Context(), nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	sweep := func() {
		if _, err := s.Sweep(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if n := partitions(); n != 8 {
		t.Errorf("%d partitions while one record of the old day stands, want 8", n)
	}
	if _, err := pool.Exec(t.Context(), "UPDATE "+name(old)+" SET expires_at = now()"); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context()) // a long handler is in the way
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM "+name(c)); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	sweep()
	if n, took := partitions(), time.Since(begun); n != 8 || took > 5*time.Second {
		t.Errorf("%d partitions after %v, want 8 and no waiting for the handler", n, took)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	sweep()
	if n := partitions(); n != 7 {
		t.Errorf("%d partitions after the old day has expired, want 7", n)
	}
	if rec, err := s.Look(t.Context(), key(now)); err != nil || rec.State != replay.Done {
		t.Errorf("today: %+v, %v", rec, err)
	}

	// Tokens that came before their partition was made move into it.
	last := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 3)
	ahead := pgstore.Config{Table: c.Table + "_" + last.Format("2006010215") + "_" + last.AddDate(0, 0, 1).Format("2006010215")}
	if _, err := pool.Exec(t.Context(), "DROP TABLE "+name(ahead)); err != nil {
		t.Fatal(err)
	}
	early := key(last.Add(time.Hour))
	if err := mustClaim(t, s, claimOf(early)).Seal(t.Context(), []byte("x"), time.Hour); err != nil {
		t.Fatal(err)
	}
	sweep()
	if got := where(early); got != ahead.Table {
		t.Errorf("%s is in %s, want %s", early, got, ahead.Table)
	}
}
