package testserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A PgBouncer pools connections per transaction, without keeping track of
// prepared statements, as many sites run it.
type PgBouncer struct {
	// URL connects through it. Clients that prepare statements have to be told
	// not to.
	URL string

	process process
	dir     string
}

// NewPgBouncer starts one in front of s.
func NewPgBouncer(ctx context.Context, s *PostgresServer) (*PgBouncer, error) {
	binary, err := findBinary("pgbouncer", "/usr/sbin", "/usr/local/sbin")
	if err != nil {
		return nil, err
	}
	cred, err := unprivileged()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	_, serverPort, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return nil, err
	}
	dir, err := tempDir(cred)
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf("[databases]\npostgres = host=127.0.0.1 port=%s user=postgres\n"+
		"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\n"+
		"pool_mode = transaction\ndefault_pool_size = 10\nmax_client_conn = 500\n"+
		"ignore_startup_parameters = extra_float_digits\n", serverPort, port)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	b := &PgBouncer{
		URL: fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port), dir: dir,
		process: process{name: binary, args: []string{file}, cred: cred},
	}
	if err := b.process.start(); err != nil {
		b.Close()
		return nil, err
	}
	err = b.process.waitFor(ctx, func(ctx context.Context) error {
		c, err := pgx.ParseConfig(b.URL)
		if err != nil {
			return err
		}
		c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		conn, err := pgx.ConnectConfig(ctx, c)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		return conn.Ping(ctx)
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Close ends it.
func (b *PgBouncer) Close() {
	b.process.end(syscall.SIGKILL)
	_ = os.RemoveAll(b.dir)
}

// StartPgBouncer starts one for one test.
func StartPgBouncer(t testing.TB, s *PostgresServer) *PgBouncer {
	t.Helper()
	b, err := NewPgBouncer(t.Context(), s)
	if err != nil {
		t.Fatalf("%v\n%s\n(Debian: apt-get install pgbouncer)", err, installAdvice)
	}
	t.Cleanup(b.Close)
	return b
}
