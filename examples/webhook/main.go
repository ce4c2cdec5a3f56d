// Command webhook takes a payment provider's callbacks, which come late, twice,
// in parallel, and again for days unless they are acknowledged.
//
// Try: send one callback five times (the program prints the command): one payment.
// Try: send it with a wrong signature: 401, and nothing is looked up.
// Try: send another amount: acknowledged, so that it is not repeated, and reported.
package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

func main() {
	secret := rand.Text() // in production: what the provider has given you
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	accounts := newAccounts(slog.Default())
	accounts.open("OF-1001", 2800)
	handler, err := newHandler(secret, store, accounts)
	if err != nil {
		log.Fatal(err)
	}

	body := `{"transaction_id":"tx-1","type":"payment.succeeded","order_no":"OF-1001","amount":2800}`
	fmt.Printf("curl http://127.0.0.1:8084/callbacks/payment -H 'X-Signature: %s' --json '%s'\n",
		sign(secret, []byte(body)), body)
	log.Fatal(http.ListenAndServe("127.0.0.1:8084", handler))
}

// newHandler puts the parts in the order in which they must stand: who sent it,
// whether it is new, what it does.
func newHandler(secret string, store replay.Store, a *accounts) (http.Handler, error) {
	guard, err := replay.New(store, replay.Config{
		// One transaction has several events, and each is delivered again and again.
		Key: func(r *http.Request) (string, error) {
			e := eventOf(r.Context())
			if e.TransactionID == "" || e.Type == "" {
				return "", errors.New("the callback has no transaction id or no type")
			}
			return e.TransactionID + "\x00" + e.Type, nil
		},
		Wait:      5 * time.Second,     // providers hang up soon; they come back
		Retention: 30 * 24 * time.Hour, // longer than the provider goes on repeating
		OnError: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, replay.ErrMismatch) {
				a.repeated(w, r)
				return
			}
			replay.DefaultOnError(w, r, err)
		},
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /callbacks/payment", verified(secret, nethttp.Middleware(guard)(http.HandlerFunc(a.pay))))
	return mux, nil
}
