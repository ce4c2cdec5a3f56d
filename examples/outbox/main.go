// Command outbox pays an order and ships it, each exactly once: the order's new
// state, the message about it and the answer commit together; the message is
// delivered at least once; and who receives it acts once per message.
//
// Try: run the commands that it prints, several times: one payment, one parcel.
// Try: kill -9 it at any moment, start it again, repeat the payment: still one.
// Try: start it twice on one database; the two relays share the messages.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8085", "`host:port` to serve on")
	url := flag.String("database-url", "postgres://shop:shop@127.0.0.1:5432/shop", "PostgreSQL")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, *addr, *url); err != nil {
		log.Fatal("outbox: ", err)
	}
}

func run(ctx context.Context, addr, url string) (err error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return fmt.Errorf("-database-url: %w", err)
	}
	defer pool.Close()
	s, err := openShop(ctx, pool)
	if err != nil {
		return fmt.Errorf("%w\nstart a server with: docker compose -f examples/orderform/compose.yaml up -d", err)
	}
	defer func() { err = errors.Join(err, s.close()) }()

	secret := make([]byte, 32) // in production: the same for all processes, from your secret store
	_, _ = rand.Read(secret)
	handler, err := s.handler(secret)
	if err != nil {
		return err
	}
	no := "OF-" + rand.Text()[:8]
	if err := s.open(ctx, no); err != nil {
		return err
	}
	fmt.Printf("token=$(curl -s http://%s/submit-token | cut -d'\"' -f4)\n", addr)
	fmt.Printf("curl -si -X POST http://%s/orders/%s/pay -H \"X-Submit-Token: $token\"\n", addr, no)

	server := &http.Server{Addr: addr, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = server.Shutdown(limit) // ListenAndServe returns; what is cut off is done by a retry
	})
	var relays sync.WaitGroup
	defer relays.Wait()
	relays.Go(func() { s.relay(ctx, s.ship, 500*time.Millisecond) })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
