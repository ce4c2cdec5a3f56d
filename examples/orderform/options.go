package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

var (
	frameworks = []string{"nethttp", "gin", "echo"}
	stores     = []string{"memory", "redis", "postgres", "postgres-tx", "sqlite", "tiered"}
)

// maxDelay is below the time that the guard gives a handler.
const maxDelay = 4 * time.Minute

// errHelp means that the flags were asked for and have been printed.
var errHelp = flag.ErrHelp

type options struct {
	addr        string
	framework   string
	store       string
	redisURL    string
	databaseURL string
	sqliteFile  string
	secretFile  string
	delay       time.Duration
}

func parseOptions(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("orderform", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "`host:port` to serve the shop on")
	f.StringVar(&o.framework, "framework", "nethttp", "nethttp, gin or echo")
	f.StringVar(&o.store, "store", "memory", strings.Join(stores, ", "))
	f.StringVar(&o.redisURL, "redis-url", "redis://127.0.0.1:6379/0",
		"Redis, for -store redis and tiered")
	f.StringVar(&o.databaseURL, "database-url", "postgres://shop:shop@127.0.0.1:5432/shop",
		"PostgreSQL, for -store postgres, postgres-tx and tiered")
	f.StringVar(&o.sqliteFile, "sqlite-file", "orderform.db", "`file` for -store sqlite, made if missing")
	f.StringVar(&o.secretFile, "secret-file", "",
		"`file` with the signing secret, made if missing; without it, pages do not outlive a restart")
	f.DurationVar(&o.delay, "delay", 0, "how long the handler takes for an order, such as 5s")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			f.SetOutput(out)
			f.Usage()
			return o, errHelp
		}
		return o, fmt.Errorf("%w (-h lists the flags)", err)
	}

	var errs []error
	if f.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q: everything is a flag", f.Arg(0)))
	}
	if !slices.Contains(frameworks, o.framework) {
		errs = append(errs, fmt.Errorf("-framework %q: want %s", o.framework, strings.Join(frameworks, ", ")))
	}
	if !slices.Contains(stores, o.store) {
		errs = append(errs, fmt.Errorf("-store %q: want %s", o.store, strings.Join(stores, ", ")))
	}
	if o.delay < 0 || o.delay > maxDelay {
		errs = append(errs, fmt.Errorf("-delay %v: want 0 to %v", o.delay, maxDelay))
	}
	return o, errors.Join(errs...)
}
