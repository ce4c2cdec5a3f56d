package testserver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func TestPostgresSurvivesKill(t *testing.T) {
	s := testserver.StartPostgres(t)
	exec := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE kept (n int)")
	s.Kill()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec("INSERT INTO kept VALUES (1)")

	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := pgx.Connect(ctx, s.URL); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("connect to a paused server: %v, want DeadlineExceeded", err)
	}
	s.Resume()
	exec("INSERT INTO kept VALUES (2)")
}

func TestPgBouncer(t *testing.T) {
	b := testserver.StartPgBouncer(t, testserver.StartPostgres(t))
	c, err := pgx.ParseConfig(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT 1").Scan(&n); err != nil || n != 1 {
		t.Errorf("SELECT 1 = %d, %v", n, err)
	}
}

func TestClusterMovesSlots(t *testing.T) {
	cluster := testserver.StartRedisCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer func() { _ = client.Close() }()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.MoveSlot(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if v, err := client.Get(t.Context(), "k").Result(); v != "v" || err != nil {
		t.Errorf("GET after the move = %q, %v", v, err)
	}
}

func TestSentinelFailsOver(t *testing.T) {
	s := testserver.StartRedisSentinel(t)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: []string{s.Addr}})
	defer func() { _ = client.Close() }()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Master.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for client.Set(ctx, "after", "v", 0).Err() != nil {
		if ctx.Err() != nil {
			t.Fatal("no master after 30 s")
		}
	}
}

func TestProxyCountsDelaysAndCuts(t *testing.T) {
	s := testserver.StartRedis(t)
	p := testserver.StartProxy(t, s.Addr)
	client := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1, PoolSize: 1, ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	before := p.Trips()
	for range 10 {
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.Trips() - before; n != 10 {
		t.Errorf("%d trips for 10 pings, want 10", n)
	}
	p.Delay(20 * time.Millisecond)
	began := time.Now()
	if err := client.Ping(t.Context()).Err(); err != nil || time.Since(began) < 40*time.Millisecond {
		t.Errorf("a ping with 20 ms each way took %v (error %v)", time.Since(began), err)
	}
	p.Delay(0)
	p.Blackhole(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := client.Ping(ctx).Err(); err == nil {
		t.Error("a ping into the hole was answered")
	}
}

func TestSharedServers(t *testing.T) {
	if a, b := testserver.Redis(t), testserver.Redis(t); a != b {
		t.Errorf("two shared servers: %s and %s", a, b)
	}
	conn, err := pgx.Connect(t.Context(), testserver.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
}
