// Command orderform is a small shop on which every trouble with double submits
// can be tried, and seen: double clicks, parallel submits, cut answers,
// refreshes, second tabs and slow handlers.
//
// Run it, open the page, and press "Order" five times:
//
//	go run ./examples/orderform
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves the shop until ctx ends and returns the exit status: 2 for bad
// flags, 1 for anything else that went wrong.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, errHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "orderform:", err)
		return 2
	}
	if err := serve(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "orderform:", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, o options, stdout, stderr io.Writer) error {
	var warnings bytes.Buffer // of use once the shop opens; before, they hide why it does not
	secret, err := openSecret(o.secretFile, &warnings)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s (choose another with -addr): %w", o.addr, err)
	}
	defer listener.Close()

	log := slog.New(slog.NewTextHandler(stderr, nil))
	b, err := openBackend(ctx, o, log)
	if err != nil {
		return err
	}
	defer b.close()
	_, _ = warnings.WriteTo(stderr)

	s, err := newShop(o, secret, b, log)
	if err != nil {
		return err
	}
	handler, err := s.handler()
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(s.journal.close) // live pages hang on for ever otherwise

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintf(stdout, "The shop is open on http://%s (%s, %s store). Ctrl-C closes it.\n",
		listener.Addr(), o.framework, o.store)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}

	// Orders in the making are finished and sealed, so that the answer is there
	// when the page asks again.
	fmt.Fprintln(stdout, "Closing: finishing the orders that have been begun.")
	limit, cancel := context.WithTimeout(context.Background(), 30*time.Second+o.delay)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		return fmt.Errorf("some orders were not finished in time: %w", err)
	}
	return nil
}
