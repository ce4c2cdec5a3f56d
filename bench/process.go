package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/submitonce/submitonce/middleware/nethttp"
)

// This program starts itself for what has to be measured in a process of its own.
const (
	roleEnv   = "SUBMITONCE_BENCH_ROLE"   // which server to be
	secretEnv = "SUBMITONCE_BENCH_SECRET" // of its tokens, in hex
)

const (
	roleBare      = "bare handler"
	roleOurs      = "submitonce, memory"
	roleFiberBare = "fiber, bare handler"
	roleFiber     = "fiber, middleware/idempotency"
)

// serveRole is a server that says where it listens and ends with its input.
func serveRole(role string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if strings.HasPrefix(role, roleFar) {
		serveFar(role, l)
		return nil
	}
	if role == roleFiber || role == roleFiberBare {
		return fiberApp(role == roleFiber, func() {}).Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
	}
	app := http.Handler(http.HandlerFunc(order))
	if role == roleOurs {
		secret, err := hex.DecodeString(os.Getenv(secretEnv))
		if err != nil {
			return err
		}
		tokens, err := newTokens(secret)
		if err != nil {
			return err
		}
		store, err := newMemstore()
		if err != nil {
			return err
		}
		g, err := guardWith(store, tokens)
		if err != nil {
			return err
		}
		app = nethttp.Middleware(g)(app)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", app)
	mux.HandleFunc("GET /peak", func(w http.ResponseWriter, _ *http.Request) {
		status, _ := os.ReadFile("/proc/self/status")
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		line, _, _ := strings.Cut(rest, "\n")
		_, _ = io.WriteString(w, strings.TrimSpace(line))
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	return server.Serve(l)
}

// startRole starts this program in a role and returns where it listens.
func startRole(ctx context.Context, role string, secret []byte) (addr string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, secretEnv+"="+hex.EncodeToString(secret))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = stdin.Close(); _ = cmd.Wait() }
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		stop()
		return "", nil, fmt.Errorf("start %s: %w", role, io.ErrUnexpectedEOF)
	}
	return lines.Text(), stop, nil
}

// largeUpload sends 1 GiB with the token in a header, twice.
func largeUpload(ctx context.Context, _ scale) ([]Fact, error) {
	secret := newSecret()
	addr, stop, err := startRole(ctx, roleOurs, secret)
	if err != nil {
		return nil, err
	}
	defer stop()
	tokens, err := newTokens(secret)
	if err != nil {
		return nil, err
	}
	peak := func() (kib int64, err error) {
		resp, err := http.Get("http://" + addr + "/peak")
		if err != nil {
			return 0, err
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = fmt.Fscanf(resp.Body, "%d kB", &kib)
		return kib, err
	}
	before, err := peak()
	if err != nil {
		return nil, err
	}
	tok := tokens.Issue("", "").Value
	for _, want := range []string{"", "true"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/orders", &zeroReader{1 << 30})
		if err != nil {
			return nil, err
		}
		req.ContentLength = 1 << 30
		req.Header.Set("X-Submit-Token", tok)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Idempotent-Replayed"); resp.StatusCode != http.StatusCreated || got != want {
			return nil, fmt.Errorf("upload: status %d, replayed %q", resp.StatusCode, got)
		}
	}
	after, err := peak()
	if err != nil {
		return nil, err
	}
	return []Fact{
		{What: "peak before the upload", Value: bytesText(float64(before << 10))},
		{What: "peak after it and its duplicate", Value: bytesText(float64(after << 10)), Goal: "< 64 MiB", Missed: after >= 64<<10},
	}, nil
}
