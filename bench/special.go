package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

// A Fact is a figure that stands for itself.
type Fact struct{ What, Value string }

// countingStore counts claims.
type countingStore struct {
	replay.Store
	claims atomic.Int64
}

func (s *countingStore) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	s.claims.Add(1)
	return s.Store.Claim(ctx, c)
}

// duplicatesAtOnce sends 1,000 duplicates of a handler that takes 50 ms.
func duplicatesAtOnce() ([]Fact, error) {
	const n, work = 1000, 50 * time.Millisecond
	var best []time.Duration
	var runs, claims int64
	for range 7 {
		mem, err := memstore.New(memstore.Config{})
		if err != nil {
			return nil, err
		}
		store := &countingStore{Store: mem}
		g, tokens, err := newGuard(store)
		if err != nil {
			return nil, err
		}
		var ran atomic.Int64
		app := nethttp.Middleware(g)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ran.Add(1)
			time.Sleep(work)
			order(w, r)
		}))
		tok := tokens.Issue("", "").Value
		var wg sync.WaitGroup
		began := time.Now()
		for range n {
			wg.Go(func() {
				r, again := request(tok)
				again(tok)
				app.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
		wg.Wait()
		best = append(best, time.Since(began))
		runs, claims = max(runs, ran.Load()), max(claims, store.claims.Load())
		_ = mem.Close()
	}
	slices.Sort(best)
	return []Fact{
		{"1,000 concurrent duplicates of a 50 ms handler, until the last is answered", round(best[len(best)/2])},
		{"handler runs and claims in the store for them", fmt.Sprintf("%d and %d", runs, claims)},
	}, nil
}

// memoryPerRecord fills a memory store through the guard.
func memoryPerRecord(n int) ([]Fact, error) {
	store, err := memstore.New(memstore.Config{MaxEntries: 2 * n, MaxBytes: 4 << 30})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	var before, after runtime.MemStats
	g, tokens, err := newGuard(store)
	if err != nil {
		return nil, err
	}
	app := nethttp.Middleware(g)(http.HandlerFunc(order))
	r, again := request("")
	w := &sink{h: http.Header{}}
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range n {
		again(tokens.Issue("", "").Value)
		clear(w.h)
		app.ServeHTTP(w, r)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
	runtime.KeepAlive(store)
	return []Fact{{fmt.Sprintf("memory per record with a 300-byte response, %d records, memstore", n), fmt.Sprintf("%.0f bytes", per)}}, nil
}

// redisPerRecord asks Redis what it takes.
func redisPerRecord(ctx context.Context, s *servers) ([]Fact, error) {
	const n = 20_000
	store, closeIt, err := s.openRedis(ctx)
	if err != nil {
		return nil, err
	}
	defer closeIt()
	client := s.redis.Client()
	defer func() { _ = client.Close() }()
	used := func() (int64, error) {
		info, err := client.Info(ctx, "memory").Result()
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(info, "used_memory:")
		text, _, _ := strings.Cut(rest, "\r\n")
		return strconv.ParseInt(text, 10, 64)
	}
	if err := client.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	before, err := used()
	if err != nil {
		return nil, err
	}
	g, tokens, err := newGuard(store)
	if err != nil {
		return nil, err
	}
	app := nethttp.Middleware(g)(http.HandlerFunc(order))
	r, again := request("")
	for range n {
		again(tokens.Issue("", "").Value)
		app.ServeHTTP(&sink{h: http.Header{}}, r)
	}
	after, err := used()
	if err != nil {
		return nil, err
	}
	return []Fact{{fmt.Sprintf("memory per record with a 300-byte response, %d records, redisstore", n), fmt.Sprintf("%d bytes", (after-before)/n)}}, nil
}

// walPerSubmit asks PostgreSQL how much it has written.
func walPerSubmit(ctx context.Context, s *servers) ([]Fact, error) {
	pool, err := s.pool(ctx, s.postgres.Addr)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	local := func() string { return s.postgres.Addr }
	var facts []Fact
	for _, c := range []struct {
		name string
		c    Contender
	}{
		{"INSERT, then UPDATE by key", s.postgresFloor(false)},
		{"pgstore, claim and seal", storeContender("", false, s.openPostgres)},
		{"the handler's own transaction", s.transaction(false, local)},
		{"the same under pgstore.TxStore", s.transaction(true, local)},
	} {
		const n = 5000
		op, closeIt, err := c.c.Open(ctx, n)
		if err != nil {
			return nil, err
		}
		var lsn string
		if err := pool.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&lsn); err != nil {
			return nil, err
		}
		for i := range n {
			if err := op(i); err != nil {
				return nil, err
			}
		}
		var bytes float64
		if err := pool.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), $1::text::pg_lsn)::float8", lsn).Scan(&bytes); err != nil {
			return nil, err
		}
		closeIt()
		facts = append(facts, Fact{"WAL per submit, " + c.name, fmt.Sprintf("%.0f bytes", bytes/n)})
	}
	return facts, nil
}

// A zeroReader gives n zeros and keeps none.
type zeroReader struct{ n int64 }

func (z *zeroReader) Read(p []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.n)
	clear(p[:n])
	z.n -= n
	return int(n), nil
}

// uploads compares a large body with one pass of SHA-256 over the same bytes.
func uploads() ([]Fact, error) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	g, tokens, err := newGuard(store)
	if err != nil {
		return nil, err
	}
	app := nethttp.Middleware(g)(http.HandlerFunc(order))
	var facts []Fact
	for _, size := range []int64{1 << 20, 100 << 20} {
		var bare, hash, guarded []time.Duration
		var grown uint64
		for range 5 {
			began := time.Now()
			_, _ = io.Copy(io.Discard, &zeroReader{size})
			bare = append(bare, time.Since(began))

			began = time.Now()
			h := sha256.New()
			_, _ = io.Copy(h, &zeroReader{size})
			hash = append(hash, time.Since(began))

			r, _ := request(tokens.Issue("", "").Value)
			r.Body, r.ContentLength = io.NopCloser(&zeroReader{size}), size
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began = time.Now()
			app.ServeHTTP(&sink{h: http.Header{}}, r)
			guarded = append(guarded, time.Since(began))
			runtime.ReadMemStats(&after)
			grown = max(grown, after.TotalAlloc-before.TotalAlloc)
		}
		for _, s := range [][]time.Duration{bare, hash, guarded} {
			slices.Sort(s)
		}
		facts = append(facts, Fact{
			fmt.Sprintf("%d MiB body: one SHA-256 pass; through the guard; allocated on the way", size>>20),
			fmt.Sprintf("%s; %s; %d KiB", round(hash[2]), round(guarded[2]), grown>>10),
		})
	}
	return facts, nil
}

const uploadEnv = "SUBMITONCE_BENCH_UPLOAD"

// serveUpload is a server in a process of its own, which tells its peak memory
// after one upload.
func serveUpload() error {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return err
	}
	g, tokens, err := newGuard(store)
	if err != nil {
		return err
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /submit-token", tokens.Handler())
	mux.Handle("POST /upload", nethttp.Middleware(g)(http.HandlerFunc(order)))
	mux.HandleFunc("GET /peak", func(w http.ResponseWriter, _ *http.Request) {
		status, _ := os.ReadFile("/proc/self/status")
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		line, _, _ := strings.Cut(rest, "\n")
		_, _ = io.WriteString(w, strings.TrimSpace(line))
	})
	fmt.Println(l.Addr())
	return http.Serve(l, mux)
}

// largeUpload sends 1 GiB with the token in a header, twice, to such a server.
func largeUpload(ctx context.Context) ([]Fact, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), uploadEnv+"=1")
	outPipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(outPipe)
	if !lines.Scan() {
		return nil, fmt.Errorf("upload server: %w", io.ErrUnexpectedEOF)
	}
	base := "http://" + lines.Text()
	get := func(path string) (string, http.Header, error) {
		resp, err := http.Get(base + path)
		if err != nil {
			return "", nil, err
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		return string(b), resp.Header, err
	}
	_, h, err := get("/submit-token")
	if err != nil {
		return nil, err
	}
	for _, want := range []string{"", "true"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/upload", &zeroReader{1 << 30})
		if err != nil {
			return nil, err
		}
		req.ContentLength = 1 << 30
		req.Header.Set("X-Submit-Token", h.Get("X-Submit-Token"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Idempotent-Replayed"); resp.StatusCode != http.StatusCreated || got != want {
			return nil, fmt.Errorf("upload: status %d, replayed %q", resp.StatusCode, got)
		}
	}
	peak, _, err := get("/peak")
	return []Fact{{"peak memory of a server process that takes a 1 GiB upload and its duplicate", peak}}, err
}

// smallestProgram builds the smallest program that uses the library, and the same
// without it.
func smallestProgram(ctx context.Context) ([]Fact, error) {
	dir, err := os.MkdirTemp("", "submitonce-size-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	size := func(name, source string) (int64, error) {
		main := filepath.Join(dir, name+".go")
		if err := os.WriteFile(main, []byte(source), 0o600); err != nil {
			return 0, err
		}
		binary := filepath.Join(dir, name)
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, main).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build: %w: %s", err, out)
		}
		info, err := os.Stat(binary)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	with, err := size("with", smallest)
	if err != nil {
		return nil, err
	}
	without, err := size("without", "package main\nimport \"net/http\"\nfunc main() { _ = http.ListenAndServe(\"\", nil) }\n")
	if err != nil {
		return nil, err
	}
	return []Fact{{"binary of the smallest program; the same without the library",
		fmt.Sprintf("%.1f MB; %.1f MB", float64(with)/1e6, float64(without)/1e6)}}, nil
}

const smallest = `package main

import (
	"net/http"
	"os"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

func main() {
	ring, _ := token.NewKeyring([]byte(os.Getenv("SECRET")))
	tokens, _ := token.New(ring, token.Config{})
	store, _ := memstore.New(memstore.Config{})
	guard, _ := replay.New(store, replay.Config{Tokens: tokens})
	_ = http.ListenAndServe("", nethttp.Middleware(guard)(http.NotFoundHandler()))
}
`

// scaling compares one goroutine with two, each with a guard's first submits.
func scaling() ([]Fact, error) {
	var facts []Fact
	for _, kind := range []struct {
		name  string
		fresh bool
	}{{"first submit", true}, {"replay", false}} {
		var ratios []float64
		for range 7 {
			store, err := memstore.New(memstore.Config{MaxEntries: 1 << 22, MaxBytes: 4 << 30})
			if err != nil {
				return nil, err
			}
			const n = 40_000
			var ops []func(int) error
			for range 3 {
				op, err := submitter(frameworks[0], store, kind.fresh, n)
				if err != nil {
					return nil, err
				}
				ops = append(ops, op)
			}
			run := func(ops ...func(int) error) time.Duration {
				runtime.GC()
				began := time.Now()
				var wg sync.WaitGroup
				for _, op := range ops {
					wg.Go(func() {
						for i := range n {
							_ = op(i)
						}
					})
				}
				wg.Wait()
				return time.Since(began)
			}
			one := run(ops[0])
			two := run(ops[1], ops[2])
			ratios = append(ratios, 2*float64(one)/float64(two))
			_ = store.Close()
		}
		slices.Sort(ratios)
		facts = append(facts, Fact{"two cores over one, memory, " + kind.name, fmt.Sprintf("%.2f × (%.2f to %.2f)", ratios[3], ratios[0], ratios[6])})
	}
	return facts, nil
}
