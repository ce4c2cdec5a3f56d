package testserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

var postgresFolders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin"}

// A PostgresServer is a server of one's own, without fsync: it survives kill -9
// of its processes, but not of the machine.
type PostgresServer struct {
	// URL connects to its database as its superuser.
	URL string

	// Addr is where it listens.
	Addr string

	process process
	dir     string
}

// NewPostgres starts a server. Each setting is "name=value" of postgresql.conf.
func NewPostgres(ctx context.Context, settings ...string) (*PostgresServer, error) {
	binary, err := findBinary("postgres", postgresFolders...)
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
	real, err := filepath.EvalSymlinks(binary)
	if err != nil {
		return nil, err
	}
	dir, err := tempDir(cred)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(filepath.Dir(real), "initdb"),
		"-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir = dir
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if out, err := initdb.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("testserver: initdb: %w: %s", err, out)
	}
	s := &PostgresServer{
		URL:  fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port),
		Addr: fmt.Sprintf("127.0.0.1:%d", port),
		dir:  dir,
	}
	s.process = process{name: real, cred: cred, args: []string{
		"-D", data, "-p", strconv.Itoa(port), "-k", dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=300",
	}}
	for _, setting := range settings {
		s.process.args = append(s.process.args, "-c", setting)
	}
	if err := s.Start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Start starts a server that was killed or stopped, with the data it had.
func (s *PostgresServer) Start(ctx context.Context) error {
	if err := s.process.start(); err != nil {
		return err
	}
	return s.process.waitFor(ctx, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.URL)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// Kill ends all of the server's processes with SIGKILL.
func (s *PostgresServer) Kill() { s.process.end(syscall.SIGKILL) }

// Stop shuts the server down and disconnects its clients.
func (s *PostgresServer) Stop() { s.process.end(syscall.SIGINT) }

// Pause stops the server with SIGSTOP: connections stand, and nothing answers.
func (s *PostgresServer) Pause() { s.process.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *PostgresServer) Resume() { s.process.signal(syscall.SIGCONT) }

// Close ends the server and removes its data.
func (s *PostgresServer) Close() {
	s.process.end(syscall.SIGKILL) // it ends a paused process, too
	_ = os.RemoveAll(s.dir)
}

// StartPostgres starts a server for one test.
func StartPostgres(t testing.TB, settings ...string) *PostgresServer {
	t.Helper()
	s, err := NewPostgres(t.Context(), settings...)
	if err != nil {
		t.Fatalf("%v\n%s", err, installAdvice)
	}
	t.Cleanup(s.Close)
	return s
}
