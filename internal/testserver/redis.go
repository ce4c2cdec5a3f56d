package testserver

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A RedisServer is a server of one's own, without persistence: it is empty after
// each start, unless its arguments say otherwise.
type RedisServer struct {
	// Addr is where it listens, URL the same for redis.ParseURL.
	Addr, URL string

	process process
	dir     string
	port    int
}

// NewRedis starts a server with arguments of redis-server's command line, such as
// "--maxmemory", "2mb". It is redis-server or valkey-server from PATH, or what
// SUBMITONCE_TEST_REDIS_BINARY names.
func NewRedis(ctx context.Context, args ...string) (*RedisServer, error) {
	binary, err := redisBinary()
	if err != nil {
		return nil, err
	}
	return NewRedisOf(ctx, binary, args...)
}

// NewRedisOf is NewRedis with the path of the server's binary.
func NewRedisOf(ctx context.Context, binary string, args ...string) (*RedisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := tempDir(nil)
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	s := &RedisServer{Addr: addr, URL: "redis://" + addr, dir: dir, port: port}
	s.process = process{name: binary, args: append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
		"--cluster-config-file", "nodes.conf",
		"--repl-diskless-sync-delay", "0", // replicas come up at once
	}, args...)}
	if err := s.Start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func redisBinary() (string, error) {
	if named := os.Getenv("SUBMITONCE_TEST_REDIS_BINARY"); named != "" {
		return findBinary(named)
	}
	binary, err := findBinary("redis-server")
	if err != nil {
		if binary, err = findBinary("valkey-server"); err != nil {
			return "", fmt.Errorf("testserver: neither redis-server nor valkey-server in PATH: %w", err)
		}
	}
	return binary, nil
}

// Start starts a server that was killed.
func (s *RedisServer) Start(ctx context.Context) error {
	if err := s.process.start(); err != nil {
		return err
	}
	return s.process.waitFor(ctx, func(ctx context.Context) error {
		c := s.Client()
		defer func() { _ = c.Close() }()
		return c.Ping(ctx).Err()
	})
}

// Client returns a client of the server.
func (s *RedisServer) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr})
}

// Kill ends the server with SIGKILL.
func (s *RedisServer) Kill() { s.process.end(syscall.SIGKILL) }

// Pause stops the server with SIGSTOP: connections stand, and nothing answers.
func (s *RedisServer) Pause() { s.process.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *RedisServer) Resume() { s.process.signal(syscall.SIGCONT) }

// Close ends the server and removes its folder.
func (s *RedisServer) Close() {
	s.process.end(syscall.SIGKILL)
	_ = os.RemoveAll(s.dir)
}

// StartRedis starts a server for one test.
func StartRedis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	s, err := NewRedis(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, installAdvice)
	}
	t.Cleanup(s.Close)
	return s
}
