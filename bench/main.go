// Command bench measures this library beside its floors and its peers in one run,
// and writes the table and the picture of docs/benchmarks.md. It is a module of
// its own, so that no peer becomes a dependency of the library.
//
//	go run . -out ../docs
//	go run . -only 'memory|token' -rounds 9
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
)

func main() {
	if os.Getenv(uploadEnv) != "" {
		fail(serveUpload())
		return
	}
	only := flag.String("only", "", "run the workloads whose names match this regular expression")
	rounds := flag.Int("rounds", 9, "rounds of each workload")
	out := flag.String("out", "", "folder for benchmarks.md and benchmarks.svg; none if empty")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	fail(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)

	workloads := memoryWorkloads()
	s, err := startServers(ctx)
	fail(err)
	defer s.close()
	more, closeMore, err := s.workloads()
	fail(err)
	defer closeMore()
	var results []Result
	for _, w := range append(workloads, more...) {
		if !pattern.MatchString(w.Name) {
			continue
		}
		logf("%s …", w.Name)
		figures, err := measure(ctx, w, *rounds)
		fail(err)
		results = append(results, Result{w, figures})
	}
	var facts []Fact
	for _, special := range []struct {
		name string
		run  func() ([]Fact, error)
	}{
		{"special: duplicates", duplicatesAtOnce},
		{"special: scaling", scaling},
		{"special: uploads", uploads},
		{"special: large upload", func() ([]Fact, error) { return largeUpload(ctx) }},
		{"special: memory per record", func() ([]Fact, error) { return memoryPerRecord(1_000_000) }},
		{"special: Redis per record", func() ([]Fact, error) { return redisPerRecord(ctx, s) }},
		{"special: WAL", func() ([]Fact, error) { return walPerSubmit(ctx, s) }},
		{"special: whole server", wholeServer},
		{"special: size", func() ([]Fact, error) { return smallestProgram(ctx) }},
	} {
		if !pattern.MatchString(special.name) {
			continue
		}
		logf("%s …", special.name)
		more, err := special.run()
		fail(err)
		facts = append(facts, more...)
	}
	printResults(results, facts)
	if *out != "" {
		fail(writeReport(filepath.Join(*out, "benchmarks.md"), results, facts, *rounds))
		fail(writeChart(filepath.Join(*out, "benchmarks.svg"), results))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
