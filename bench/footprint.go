package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// memoryPerRecord fills stores through guards.
func (s *servers) memoryPerRecord(ctx context.Context, sc scale) ([]Fact, error) {
	n := sc.of(1_000_000, 50_000)
	ours, err := memstorePerRecord(n)
	if err != nil {
		return nil, err
	}
	peer, err := fiberPerRecord(n)
	if err != nil {
		return nil, err
	}
	redis, err := s.redisPerRecord(ctx, n)
	if err != nil {
		return nil, err
	}
	name := func(what string) string { return fmt.Sprintf("%s, %d records", what, n) }
	bytes := func(v float64) string { return fmt.Sprintf("%.0f bytes", v) }
	return []Fact{
		{What: name("memstore"), Value: bytes(ours), Goal: "≤ 1,000 bytes", Missed: ours > 1000},
		{What: name("redisstore"), Value: bytes(redis), Goal: "≤ 717 bytes (0.7 KiB)", Missed: redis > 717},
		{What: name("fiber, middleware/idempotency, in memory"), Value: bytes(peer)},
	}, nil
}

// liveHeap is what a collection leaves.
func liveHeap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one has only put into the pools' second generation
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func memstorePerRecord(n int) (float64, error) {
	store, err := newMemstore()
	if err != nil {
		return 0, err
	}
	defer func() { _ = store.Close() }()
	g, tokens, err := newGuard(store)
	if err != nil {
		return 0, err
	}
	app := frameworks[0].app(g)
	before := liveHeap()
	for range n {
		// Each token's string is made anew, as a server would get it.
		if err := submitting(app, []string{tokens.Issue("", "").Value}, false)(0); err != nil {
			return 0, err
		}
	}
	per := (liveHeap() - before) / float64(n)
	runtime.KeepAlive(app)
	return per, nil
}

func fiberPerRecord(n int) (float64, error) {
	app := fiberApp(true, func() {})
	defer func() { _ = app.Shutdown() }()
	handler, c := app.Handler(), new(fasthttp.RequestCtx)
	before := liveHeap()
	for range n {
		if err := fiberSubmit(handler, c, uuid()); err != nil {
			return 0, err
		}
	}
	per := (liveHeap() - before) / float64(n)
	runtime.KeepAlive(app)
	return per, nil
}

func (s *servers) redisPerRecord(ctx context.Context, n int) (float64, error) {
	store, closeIt, err := s.openRedis(s.redis)(ctx)
	if err != nil {
		return 0, err
	}
	defer closeIt()
	client, err := s.client(ctx, s.redis)
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	used := func() (float64, error) {
		info, err := client.Info(ctx, "memory").Result()
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(info, "used_memory:")
		text, _, _ := strings.Cut(rest, "\r\n")
		return strconv.ParseFloat(text, 64)
	}
	const workers = 16
	worker, err := guarded(frameworks[0], store, true, n+workers)
	if err != nil {
		return 0, err
	}
	ops, err := workersOf(opened{worker: worker}, workers)
	if err != nil {
		return 0, err
	}
	if err := client.FlushAll(ctx).Err(); err != nil {
		return 0, err
	}
	if err := spread(ops, 0, workers); err != nil { // connections and scripts
		return 0, err
	}
	before, err := used()
	if err != nil {
		return 0, err
	}
	if err := spread(ops, workers, n); err != nil {
		return 0, err
	}
	after, err := used()
	if err != nil {
		return 0, err
	}
	return (after - before) / float64(n), client.FlushAll(ctx).Err()
}

// smallestProgram builds the smallest program that uses the library, and the same
// without it, and starts both in turn.
func smallestProgram(ctx context.Context, sc scale) ([]Fact, error) {
	dir, err := os.MkdirTemp("", "submitonce-size-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	build := func(name, source string) (binary string, size float64, err error) {
		file := filepath.Join(dir, name+".go")
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			return "", 0, err
		}
		binary = filepath.Join(dir, name)
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, file).CombinedOutput(); err != nil {
			return "", 0, fmt.Errorf("build the smallest program, which needs bench as the working directory: %w: %s", err, out)
		}
		info, err := os.Stat(binary)
		if err != nil {
			return "", 0, err
		}
		return binary, float64(info.Size()), nil
	}
	with, withSize, err := build("with", fmt.Sprintf(smallest, guardImports, guardSetup, "nethttp.Middleware(guard)(app)"))
	if err != nil {
		return nil, err
	}
	without, withoutSize, err := build("without", fmt.Sprintf(smallest, "", "", "app"))
	if err != nil {
		return nil, err
	}
	start := func(binary string, took *[]float64) func() error {
		return func() error {
			began := time.Now()
			out, err := exec.CommandContext(ctx, binary).CombinedOutput()
			*took = append(*took, float64(time.Since(began)))
			if err != nil || !strings.HasPrefix(string(out), "201") {
				return fmt.Errorf("%s: %w: %q", filepath.Base(binary), err, out)
			}
			return nil
		}
	}
	var withTook, withoutTook []float64
	if err := turns(ctx, sc.of(4*sc.rounds, 5), start(with, &withTook), start(without, &withoutTook)); err != nil {
		return nil, err
	}
	return []Fact{
		{What: "binary, with and without", Value: fmt.Sprintf("%s, %s", bytesText(withSize), bytesText(withoutSize))},
		{What: "start to end, with", Value: span(spreadOf(withTook), nanos)},
		{What: "start to end, without", Value: span(spreadOf(withoutTook), nanos)},
	}, nil
}

// smallest listens, answers one request in the process, prints its status and
// ends. Both forms contain net/http's server.
const smallest = `package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
%s)

func main() {
	var handler http.Handler
	app := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201) }))
	r := httptest.NewRequest("POST", "/orders", strings.NewReader("{}"))
%s	handler = %s
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, handler)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Code)
}
`

const guardImports = `
	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
`

const guardSetup = `	ring, err := token.NewKeyring([]byte("a secret of 32 bytes or more, for once"))
	if err != nil {
		panic(err)
	}
	tokens, err := token.New(ring, token.Config{})
	if err != nil {
		panic(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := replay.New(store, replay.Config{Tokens: tokens})
	if err != nil {
		panic(err)
	}
	r.Header.Set("X-Submit-Token", tokens.Issue("", "").Value)
`
