// Command torture submits forms, kills processes and servers meanwhile, and
// counts what came of it. It starts servers of its own.
//
//	go run . -for 10m
//	go run . -for 1m -mode tx -plant seal-after-answer
//
// It ends with status 1 if anything happened that must not: an effect twice where
// effect and record commit together, an answer without an effect, two answers to
// one token, or a history of store calls that no order explains.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

var allModes = []Mode{Lease, Tiered, Tx, TieredTx}

func main() {
	if text := os.Getenv(appEnv); text != "" {
		fail(runApp(text))
		return
	}
	length := flag.Duration("for", time.Minute, "how long in all")
	mode := flag.String("mode", "", "one of lease, tiered, tx, tiered-tx; all if empty")
	plant := flag.String("plant", "", "plant a bug: "+NoFencing+" or "+SealAfterAnswer)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	modes := allModes
	if *mode != "" {
		modes = []Mode{Mode(*mode)}
	}
	servers, err := startServers(ctx)
	fail(err)
	defer servers.close()
	var reports []*Report
	var wrong []string
	for _, m := range modes {
		run := &Run{Mode: m, For: *length / time.Duration(len(modes)), Plant: *plant}
		rep, err := run.Execute(ctx, servers)
		fail(err)
		reports = append(reports, rep)
		for _, what := range rep.Wrong() {
			wrong = append(wrong, fmt.Sprintf("%s: %s", m, what))
		}
	}
	fail(Print(os.Stdout, reports))
	if len(wrong) > 0 {
		fmt.Println("\nwrong:\n  " + strings.Join(wrong, "\n  "))
		servers.close()
		os.Exit(1)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}
