// Command bench measures this library beside its floors and its peers in one run,
// and writes the table and the picture of docs/benchmarks.md. It is a module of
// its own, so that no peer becomes a dependency of the library.
//
//	go run . -out ../docs                      // all of it; minutes
//	go run . -quick                            // all of it, in few and short rounds
//	go run . -only 'memory|token' -rounds 31   // a part
//
// It starts the servers that it needs. Figures mean something only while the
// machine does nothing else.
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
	"syscall"
	"time"
)

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)
	err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	if role := os.Getenv(roleEnv); role != "" {
		return serveRole(role)
	}
	only := flag.String("only", "", "run what has a name that matches this regular expression")
	rounds := flag.Int("rounds", 15, "rounds of each workload")
	quick := flag.Bool("quick", false, "three short rounds: to see that all runs, not to believe it")
	out := flag.String("out", "", "folder for benchmarks.md and benchmarks.svg; none if empty")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds is %d: it has to be positive", *rounds)
	}
	sc := scale{rounds: *rounds, quick: *quick}
	if sc.quick {
		sc.rounds = 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Every call gets a deadline, floors and stores alike, because a guard gives
	// one to each call of its store. Clients work otherwise without.
	ctx, cancel := context.WithTimeout(ctx, 6*time.Hour)
	defer cancel()

	s, err := newServers()
	if err != nil {
		return err
	}
	defer s.close()
	rep := report{scale: sc, only: *only}
	for _, w := range append(memoryWorkloads(), s.storeWorkloads()...) {
		if !pattern.MatchString(w.Name) {
			continue
		}
		if sc.quick {
			w.Slice /= 4
		}
		logf("%s …", w.Name)
		figures, err := measure(ctx, w, sc.rounds)
		if err != nil {
			return err
		}
		rep.results = append(rep.results, result{w, figures})
	}
	for _, sp := range s.specials() {
		if !pattern.MatchString(sp.Name) {
			continue
		}
		logf("%s …", sp.Name)
		facts, err := sp.Run(ctx, sc)
		if err != nil {
			return fmt.Errorf("%s: %w", sp.Name, err)
		}
		rep.specials = append(rep.specials, specialResult{sp, facts})
	}
	rep.servers = s.versions(ctx)
	if err := rep.print(os.Stdout); err != nil || *out == "" {
		return err
	}
	chart := rep.chart()
	if chart != "" {
		if err := os.WriteFile(filepath.Join(*out, "benchmarks.svg"), []byte(chart), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(*out, "benchmarks.md"), []byte(rep.markdown(chart != "")), 0o644)
}
