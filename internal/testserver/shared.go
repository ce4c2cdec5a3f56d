package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

const installAdvice = `Tests need real servers. Name them in SUBMITONCE_TEST_POSTGRES_URL and SUBMITONCE_TEST_REDIS_URL,
or install them (Debian: apt-get install postgresql redis-server), or start Docker; "make servers" tries all of that.`

// shared holds the servers that the tests of one process share. It is the one
// place where this package keeps state: a test binary is a process of its own.
var shared struct {
	mu       sync.Mutex
	postgres sharedServer // guarded by mu
	redis    sharedServer // guarded by mu
}

type sharedServer struct {
	url  string
	err  error
	stop func()
}

// Main runs the tests and stops the shared servers that they started.
func Main(m *testing.M) {
	code := m.Run()
	shared.mu.Lock()
	for _, s := range []sharedServer{shared.postgres, shared.redis} {
		if s.stop != nil {
			s.stop()
		}
	}
	os.Exit(code)
}

// Postgres returns the URL of a server that the tests of this process share. Each
// test makes tables of its own there.
func Postgres(t testing.TB) string {
	t.Helper()
	return use(t, &shared.postgres, "SUBMITONCE_TEST_POSTGRES_URL", func(ctx context.Context) (string, func(), error) {
		s, err := NewPostgres(ctx)
		if err != nil {
			return docker(ctx, err, "postgres:15-alpine", "5432", "postgres://postgres@%s/postgres?sslmode=disable",
				pingPostgres, "-e", "POSTGRES_HOST_AUTH_METHOD=trust")
		}
		return s.URL, s.Close, nil
	})
}

// Redis returns the URL of a server that the tests of this process share. Each
// test uses keys of its own there.
func Redis(t testing.TB) string {
	t.Helper()
	return use(t, &shared.redis, "SUBMITONCE_TEST_REDIS_URL", func(ctx context.Context) (string, func(), error) {
		s, err := NewRedis(ctx)
		if err != nil {
			return docker(ctx, err, "redis:7-alpine", "6379", "redis://%s", pingRedis)
		}
		return s.URL, s.Close, nil
	})
}

func use(t testing.TB, s *sharedServer, env string, start func(context.Context) (string, func(), error)) string {
	t.Helper()
	if url := os.Getenv(env); url != "" {
		return url
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if s.url == "" && s.err == nil {
		s.url, s.stop, s.err = start(context.Background())
	}
	if s.err != nil {
		t.Fatalf("%v\n%s", s.err, installAdvice)
	}
	return s.url
}

// docker starts an image, where local binaries are missing, which cause tells.
func docker(ctx context.Context, cause error, image, port, format string, ping func(context.Context, string) error, args ...string) (string, func(), error) {
	args = append(append([]string{"run", "--rm", "--detach", "--publish", "127.0.0.1::" + port}, args...), image)
	out, err := exec.CommandContext(ctx, "docker", args...).Output()
	if err != nil {
		return "", nil, errors.Join(cause, fmt.Errorf("testserver: docker run %s: %w", image, err))
	}
	id := strings.TrimSpace(string(out))
	stop := func() { _ = exec.Command("docker", "kill", id).Run() }
	out, err = exec.CommandContext(ctx, "docker", "port", id, port).Output()
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("testserver: docker port: %w", err)
	}
	addr, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	url := fmt.Sprintf(format, addr)
	end := time.Now().Add(time.Minute)
	for err = ping(ctx, url); err != nil; err = ping(ctx, url) {
		if time.Now().After(end) {
			stop()
			return "", nil, fmt.Errorf("testserver: %s in Docker does not answer: %w", image, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return url, stop, nil
}

func pingPostgres(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func pingRedis(ctx context.Context, url string) error {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	c := redis.NewClient(opts)
	defer func() { _ = c.Close() }()
	return c.Ping(ctx).Err()
}
