package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/submitonce/submitonce/replay/memstore"
)

const secret = "the provider's secret"

func newServer(t *testing.T) (*httptest.Server, *accounts) {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a := newAccounts(slog.New(slog.DiscardHandler))
	a.open("OF-1", 2800)
	handler, err := newHandler(secret, store, a)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server, a
}

func callback(tx, kind, order string, amount int, more string) string {
	return fmt.Sprintf(`{"transaction_id":%q,"type":%q,"order_no":%q,"amount":%d%s}`, tx, kind, order, amount, more)
}

// deliver sends body as the provider does and returns the answer.
func deliver(t *testing.T, server *httptest.Server, body, signature string) (status int, answer string, replayed bool) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/callbacks/payment", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Signature", signature)
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Error(err)
		return 0, "", false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text)), resp.Header.Get("Idempotent-Replayed") == "true"
}

func check(t *testing.T, a *accounts, paid int64, reports int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if got := a.byOrder["OF-1"].paid; got != paid {
		t.Errorf("paid = %d, want %d", got, paid)
	}
	if a.reports != reports {
		t.Errorf("reports = %d, want %d", a.reports, reports)
	}
}

func TestDuplicatesAreAcknowledgedWithTheFirstSuccess(t *testing.T) {
	server, a := newServer(t)
	body := callback("tx-1", "payment.succeeded", "OF-1", 2800, "")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			status, answer, _ := deliver(t, server, body, sign(secret, []byte(body)))
			if status != http.StatusOK || answer != `{"status":"paid"}` {
				t.Errorf("callback = %d %s, want 200 paid", status, answer)
			}
		})
	}
	wg.Wait()
	status, answer, replayed := deliver(t, server, body, sign(secret, []byte(body)))
	if status != http.StatusOK || answer != `{"status":"paid"}` || !replayed {
		t.Errorf("late callback = %d %s, replayed %v; want 200 paid, replayed", status, answer, replayed)
	}
	check(t, a, 2800, 0)
}

func TestWrongSignatureTouchesNothing(t *testing.T) {
	server, a := newServer(t)
	body := callback("tx-1", "payment.succeeded", "OF-1", 2800, "")
	for _, signature := range []string{"", "0000", sign("another secret", []byte(body))} {
		if status, _, _ := deliver(t, server, body, signature); status != http.StatusUnauthorized {
			t.Errorf("signature %q: status %d, want 401", signature, status)
		}
	}
	check(t, a, 0, 0)

	// The forged ones have not occupied the key.
	if status, answer, replayed := deliver(t, server, body, sign(secret, []byte(body))); status != http.StatusOK || answer != `{"status":"paid"}` || replayed {
		t.Errorf("real callback = %d %s, replayed %v; want 200 paid, first", status, answer, replayed)
	}
	check(t, a, 2800, 0)
}

func TestWrongAmountIsAcknowledgedAndReported(t *testing.T) {
	server, a := newServer(t)
	body := callback("tx-1", "payment.succeeded", "OF-1", 1, "")
	for range 3 {
		if status, answer, _ := deliver(t, server, body, sign(secret, []byte(body))); status != http.StatusOK || answer != `{"status":"reported"}` {
			t.Errorf("callback = %d %s, want 200 reported", status, answer)
		}
	}
	check(t, a, 0, 1)
}

func TestOneTransactionWithTwoAmountsIsAcknowledgedAndReported(t *testing.T) {
	server, a := newServer(t)
	for i, tt := range []struct {
		amount int
		more   string
		answer string
	}{
		{2800, "", `{"status":"paid"}`},
		{2900, "", `{"status":"reported"}`},
		{2800, `,"delivered_at":"later"`, `{"status":"known"}`},
		{2800, "", `{"status":"paid"}`},
	} {
		body := callback("tx-1", "payment.succeeded", "OF-1", tt.amount, tt.more)
		if status, answer, _ := deliver(t, server, body, sign(secret, []byte(body))); status != http.StatusOK || answer != tt.answer {
			t.Errorf("callback %d = %d %s, want 200 %s", i, status, answer, tt.answer)
		}
	}
	check(t, a, 2800, 1)
}

func TestEventsOfOneTransactionAreApart(t *testing.T) {
	server, a := newServer(t)
	for _, tt := range []struct{ kind, answer string }{
		{"payment.created", `{"status":"ignored"}`},
		{"payment.succeeded", `{"status":"paid"}`},
	} {
		body := callback("tx-1", tt.kind, "OF-1", 2800, "")
		if status, answer, _ := deliver(t, server, body, sign(secret, []byte(body))); status != http.StatusOK || answer != tt.answer {
			t.Errorf("%s = %d %s, want 200 %s", tt.kind, status, answer, tt.answer)
		}
	}
	check(t, a, 2800, 0)
}

func TestCallbackThatOvertookItsOrderIsTakenLater(t *testing.T) {
	server, a := newServer(t)
	body := callback("tx-2", "payment.succeeded", "OF-2", 500, "")
	if status, _, _ := deliver(t, server, body, sign(secret, []byte(body))); status != http.StatusNotFound {
		t.Errorf("early callback: status %d, want 404", status)
	}
	a.open("OF-2", 500)
	if status, answer, replayed := deliver(t, server, body, sign(secret, []byte(body))); status != http.StatusOK || answer != `{"status":"paid"}` || replayed {
		t.Errorf("callback = %d %s, replayed %v; want 200 paid, first", status, answer, replayed)
	}
}

func TestCallbackWithoutIdentityIsRefused(t *testing.T) {
	server, _ := newServer(t)
	for _, body := range []string{"{}", callback("", "payment.succeeded", "OF-1", 1, ""), "not JSON"} {
		if status, _, _ := deliver(t, server, body, sign(secret, []byte(body))); status != http.StatusBadRequest {
			t.Errorf("%s: status %d, want 400", body, status)
		}
	}
}
