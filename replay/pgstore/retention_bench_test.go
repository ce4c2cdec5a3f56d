package pgstore_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay/pgstore"
)

// BenchmarkRetention gets rid of a day of records, all expired, with responses
// of 300 bytes, in batches and by dropping their partition. It reports the time
// that the server is busy with it (replay.Sweep adds a pause of 50 ms for each
// batch of 1,000), what it writes to its log, and what is left on disk. Run it with
//
//	SUBMITONCE_BENCH_ROWS=5000000 go test -bench Retention -run '^$' -benchtime 1x -timeout 1h ./replay/pgstore
//
// The default is 100,000 rows.
func BenchmarkRetention(b *testing.B) {
	rows := 100_000
	if n, err := strconv.Atoi(os.Getenv("SUBMITONCE_BENCH_ROWS")); err == nil {
		rows = n
	}
	b.Run("batches", func(b *testing.B) { benchRetention(b, pgstore.Config{}, rows) })
	b.Run("partition", func(b *testing.B) { benchRetention(b, pgstore.Config{Partition: 24 * time.Hour}, rows) })
}

func benchRetention(b *testing.B, c pgstore.Config, rows int) {
	b.Helper()
	pool := newPool(b, serverURL(b))
	for b.Loop() {
		b.StopTimer()
		c := newTable(b, pool, c)
		s := newStore(b, pool, c)
		day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -8)
		if c.Partition > 0 {
			addDay(b, pool, c, day)
		}
		_, err := pool.Exec(b.Context(), "INSERT INTO "+name(c)+` SELECT
			convert_to('t' || lpad(to_hex($1::bigint + n * 86400000 / $2::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 19) || '.' || substr(md5(n::text), 1, 22), 'UTF8'),
			decode(md5(n::text), 'hex'), 1, 1, now(), $3::bytea FROM generate_series(0, $2::bigint - 1) n`,
			day.UnixMilli(), rows, make([]byte, 300))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := pool.Exec(b.Context(), "VACUUM ANALYZE "+name(c)); err != nil {
			b.Fatal(err)
		}
		if _, err := pool.Exec(b.Context(), "CHECKPOINT"); err != nil {
			b.Fatal(err)
		}
		wal := func() int64 { return value[int64](b, pool, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn") }
		written, batches := wal(), 0
		b.StartTimer()
		for n := 1000; n == 1000; batches++ {
			if n, err = s.Sweep(b.Context(), 1000); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		b.ReportMetric(float64(batches), "batches")
		b.ReportMetric(float64(wal()-written)/1e6, "MB-WAL")
		left := value[int64](b, pool, `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
			WHERE relkind = 'r' AND starts_with(relname, $1::text)`, c.Table)
		b.ReportMetric(float64(left)/1e6, "MB-left")
		if n := value[int64](b, pool, "SELECT count(*) FROM "+name(c)); n != 0 {
			b.Fatalf("%d records left", n)
		}
		b.StartTimer()
	}
}

// addDay makes the partition of a day that is over.
func addDay(b *testing.B, pool *pgxpool.Pool, c pgstore.Config, day time.Time) {
	b.Helper()
	next := day.AddDate(0, 0, 1)
	part := pgstore.Config{Table: c.Table + "_" + day.Format("2006010215") + "_" + next.Format("2006010215")}
	bound := func(t time.Time) string {
		return `convert_to('t' || lpad(to_hex(` + strconv.FormatInt(t.UnixMilli(), 10) + `::bigint), 12, '0'), 'UTF8')`
	}
	_, err := pool.Exec(b.Context(), "CREATE TABLE "+name(part)+" PARTITION OF "+name(c)+
		" FOR VALUES FROM ("+bound(day)+") TO ("+bound(next)+") WITH (fillfactor = 90)")
	if err != nil {
		b.Fatal(err)
	}
}
