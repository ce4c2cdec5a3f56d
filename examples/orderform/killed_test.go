package main

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// A shop is killed in mid-order, started again, and asked again.
func TestKilledShopMakesOneOrder(t *testing.T) {
	tests := []struct {
		store  string
		within time.Duration // of the second start
	}{
		{"postgres-tx", lease / 2}, // at once; no lease has to run out
		{"postgres", 2 * lease},
		{"sqlite", 2 * lease},
	}
	for _, tt := range tests {
		t.Run(tt.store, func(t *testing.T) {
			t.Parallel()
			args := []string{"-store", tt.store, "-secret-file", filepath.Join(t.TempDir(), "secret")}
			if tt.store == "sqlite" {
				args = append(args, "-sqlite-file", filepath.Join(t.TempDir(), "shop.db"))
			} else {
				args = append(args, "-database-url", newDatabase(t))
			}
			first := start(t, append(args, "-delay", "1m")...)
			page := first.live()
			token := first.token("form=order")
			go first.try(http.MethodPost, "/orders", `{"item":"mug","quantity":1}`,
				"X-Submit-Token", token, "Content-Type", asJSON) // is cut off
			for s := new(submit); s.OrderNo == ""; {
				page.next("submit", s)
			}
			if err := first.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = first.wait() // killed

			second := start(t, args...)
			began := time.Now()
			second.want(second.order(token, asJSON, `{"item":"mug","quantity":1}`), http.StatusCreated)
			if took := time.Since(began); took > tt.within {
				t.Errorf("the order took %v, want at most %v", took, tt.within)
			}
			second.wantOrders(1)
		})
	}
}
