package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
	"github.com/submitonce/submitonce/replay/redisstore"
	"github.com/submitonce/submitonce/replay/sqlitestore"
	"github.com/submitonce/submitonce/replay/tieredstore"
	"github.com/submitonce/submitonce/token"
)

// A Mode is how the records are kept.
type Mode string

// The modes. In the first two the handler writes its effect in a transaction of
// its own; in the others the effect, the claim and the response commit together.
const (
	Lease    Mode = "lease"     // pgstore
	Tiered   Mode = "tiered"    // redisstore before pgstore
	Tx       Mode = "tx"        // pgstore, transactional
	TieredTx Mode = "tiered-tx" // redisstore before pgstore, transactional

	// These are not for a run, which empties Redis and has effects in PostgreSQL.
	Redis  Mode = "redis"
	SQLite Mode = "sqlite"
)

func (m Mode) transactional() bool { return m == Tx || m == TieredTx }
func (m Mode) redis() bool         { return m == Tiered || m == TieredTx || m == Redis }

// An AppConfig is what a process that serves orders is told, by its environment.
type AppConfig struct {
	Mode     Mode
	Addr     string
	Postgres string
	Redis    string
	SQLite   string        // the file of mode sqlite
	History  string        // file that store calls are written to; "" for none
	Lease    time.Duration // of claims
	Work     time.Duration // a handler takes up to this long, twice
	Takes    time.Duration // and this long in any case
	KillAt   Point         // the process kills itself there, if the request asks for it
	Plant    string        // a bug to be found; see plant.go
}

const appEnv = "SUBMITONCE_TORTURE_APP"

// secret is the same in all processes, so that tokens are good everywhere.
var secret = sha256.Sum256([]byte("a torture run has nothing to protect"))

// runApp serves orders until it is killed.
func runApp(text string) error {
	var c AppConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("%s: %w", appEnv, err)
	}
	// What goes wrong here is meant to.
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	slog.SetDefault(log)
	ctx := context.Background()
	pool, err := openPool(ctx, c.Postgres)
	if err != nil {
		return err
	}
	store, err := openStore(c, pool)
	if err != nil {
		return err
	}
	store = planted(store, c, pool)
	if c.History != "" {
		file, err := os.OpenFile(c.History, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		store = recording(store, file)
	}
	store = killing(store, c)
	tokens, err := newTokens()
	if err != nil {
		return err
	}
	guard, err := replay.New(store, replay.Config{
		Tokens: tokens, Lease: c.Lease, Wait: 20 * time.Second, HandlerTimeout: time.Minute,
		StoreTimeout: 3 * time.Second, SealTimeout: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ready") })
	mux.Handle("POST /orders", killLate(c, nethttp.Middleware(guard)(order(c, pool))))
	l, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return err
	}
	return http.Serve(l, mux)
}

func newTokens() (*token.Issuer, error) {
	ring, err := token.NewKeyring(secret[:])
	if err != nil {
		return nil, err
	}
	return token.New(ring, token.Config{})
}

func openPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	pc.MaxConns = 16
	return pgxpool.NewWithConfig(ctx, pc)
}

func openStore(c AppConfig, pool *pgxpool.Pool) (replay.Store, error) {
	if c.Mode == SQLite {
		db, err := sqlitestore.Open(c.SQLite)
		if err != nil {
			return nil, err
		}
		return sqlitestore.New(context.Background(), db)
	}
	var back replay.Store
	var err error
	if c.Mode.transactional() {
		back, err = pgstore.NewTx(pool, pgstore.TxConfig{})
	} else {
		back, err = pgstore.New(pool, pgstore.Config{})
	}
	if err != nil || !c.Mode.redis() {
		return back, err
	}
	opts, err := redis.ParseURL(c.Redis)
	if err != nil {
		return nil, err
	}
	opts.ContextTimeoutEnabled = true // calls end with their contexts, without a goroutine for each
	front, err := redisstore.New(redis.NewClient(opts), redisstore.Config{})
	if err != nil {
		return nil, err
	}
	if c.Mode == Redis {
		return front, nil
	}
	return tieredstore.New(front, back, tieredstore.Config{})
}

// order makes one effect and answers with its name, which is random: two runs
// never answer alike.
func order(c AppConfig, pool *pgxpool.Pool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		key, attempt := replay.Key(ctx), replay.Attempt(ctx)
		kill := r.Header.Get(killHeader) != ""
		if _, err := pool.Exec(ctx, "INSERT INTO runs (key, attempt) VALUES ($1, $2)", key, attempt); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		killAt(c, BeforeEffect, kill)
		pause(c.Work)
		time.Sleep(c.Takes)
		name := fmt.Sprintf("%016x", rand.Uint64())
		const insert = "INSERT INTO effects (key, attempt, name) VALUES ($1, $2, $3)"
		var err error
		if c.Mode.transactional() {
			_, err = pgstore.Tx(ctx).Exec(ctx, insert, key, attempt, name)
		} else {
			_, err = pool.Exec(ctx, insert, key, attempt, name)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		killAt(c, AfterEffect, kill)
		pause(c.Work)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Location", "/orders/"+name)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, strings.Join([]string{"order", name, "\n"}, " "))
	})
}

// pause takes up to d, so that faults find the handler at every step.
func pause(d time.Duration) {
	if d > 0 {
		time.Sleep(rand.N(d))
	}
}

// effectsSchema holds what handlers do, and that they ran.
const effectsSchema = `
CREATE TABLE IF NOT EXISTS effects (key text NOT NULL, attempt int NOT NULL, name text NOT NULL);
CREATE TABLE IF NOT EXISTS runs (key text NOT NULL, attempt int NOT NULL);
CREATE INDEX IF NOT EXISTS effects_key ON effects (key);
CREATE INDEX IF NOT EXISTS runs_key ON runs (key);
`
