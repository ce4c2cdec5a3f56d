package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// newShop returns a shop with tables of its own, and a server of its payments.
func newShop(t *testing.T) (*shop, *httptest.Server) {
	t.Helper()
	c, err := pgxpool.ParseConfig(testserver.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	schema := "outbox_" + strings.ToLower(rand.Text()[:10])
	c.ConnConfig.RuntimeParams["search_path"] = schema
	c.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	s, err := openShop(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	handler, err := s.handler(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return s, server
}

func request(t *testing.T, server *httptest.Server, method, path, token string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	if token != "" {
		r.Header.Set("X-Submit-Token", token)
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

func newToken(t *testing.T, server *httptest.Server) string {
	t.Helper()
	var answer struct {
		Token string `json:"token"`
	}
	_, body := request(t, server, http.MethodGet, "/submit-token", "")
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Token
}

// wantRows checks how many rows of a table there are.
func (s *shop) wantRows(t *testing.T, from string, want int) {
	t.Helper()
	var got int
	if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+from).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s: %d rows, want %d", from, got, want)
	}
}

func (s *shop) mustOpen(t *testing.T, orders ...string) {
	t.Helper()
	for _, no := range orders {
		if err := s.open(t.Context(), no); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParallelPaymentsPayOnceAndLeaveOneMessage(t *testing.T) {
	s, server := newShop(t)
	s.mustOpen(t, "OF-1")
	token := newToken(t, server)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if status, body := request(t, server, http.MethodPost, "/orders/OF-1/pay", token); status != http.StatusOK || body != "order OF-1 is paid\n" {
				t.Errorf("payment = %d %s, want 200 order OF-1 is paid", status, body)
			}
		})
	}
	wg.Wait()
	s.wantRows(t, "outbox_orders WHERE status = 'PAID'", 1)
	s.wantRows(t, "outbox_messages", 1)
}

func TestOrderIsPaidByOneOfManyForms(t *testing.T) {
	s, server := newShop(t)
	s.mustOpen(t, "OF-1")
	var mu sync.Mutex
	statuses := make(map[int]int)
	var wg sync.WaitGroup
	for range 10 {
		token := newToken(t, server)
		wg.Go(func() {
			status, _ := request(t, server, http.MethodPost, "/orders/OF-1/pay", token)
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	wg.Wait()
	if statuses[http.StatusOK] != 1 || statuses[http.StatusConflict] != 9 {
		t.Errorf("statuses %v, want 200 once and 409 nine times", statuses)
	}
	s.wantRows(t, "outbox_messages", 1)
}

func TestFailedPaymentLeavesNothing(t *testing.T) {
	s, server := newShop(t)
	s.mustOpen(t, "OF-1")
	if _, err := s.pool.Exec(t.Context(), `ALTER TABLE outbox_messages ADD CONSTRAINT broken CHECK (false)`); err != nil {
		t.Fatal(err)
	}
	token := newToken(t, server)
	if status, _ := request(t, server, http.MethodPost, "/orders/OF-1/pay", token); status < 500 {
		t.Errorf("status %d, want one of 500", status)
	}
	s.wantRows(t, "outbox_orders WHERE status = 'WAIT_PAY'", 1)

	if _, err := s.pool.Exec(t.Context(), `ALTER TABLE outbox_messages DROP CONSTRAINT broken`); err != nil {
		t.Fatal(err)
	}
	if status, body := request(t, server, http.MethodPost, "/orders/OF-1/pay", token); status != http.StatusOK {
		t.Errorf("payment again = %d %s, want 200", status, body)
	}
	s.wantRows(t, "outbox_messages", 1)
}

func TestMessageThatComesTwiceShipsOneParcel(t *testing.T) {
	s, server := newShop(t)
	s.mustOpen(t, "OF-1")
	request(t, server, http.MethodPost, "/orders/OF-1/pay", newToken(t, server))

	crash := errors.New("crashed between delivery and mark")
	n, err := s.relayOnce(t.Context(), func(ctx context.Context, m message) error {
		return errors.Join(s.ship(ctx, m), crash)
	})
	if n != 0 || !errors.Is(err, crash) {
		t.Fatalf("relay = %d, %v; want 0 and the crash", n, err)
	}
	s.wantRows(t, "outbox_parcels", 1)
	for _, want := range []int{1, 0} {
		if n, err := s.relayOnce(t.Context(), s.ship); n != want || err != nil {
			t.Errorf("relay = %d, %v; want %d messages", n, err, want)
		}
	}
	s.wantRows(t, "outbox_parcels", 1)
	s.wantRows(t, "outbox_messages WHERE delivered IS NOT NULL", 1)
}

func TestParallelDeliveriesOfOneMessageShipOneParcel(t *testing.T) {
	s, _ := newShop(t)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := s.ship(t.Context(), message{ID: 1, Key: "paid OF-1", OrderNo: "OF-1"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.wantRows(t, "outbox_parcels", 1)
}

func TestRelaysDoNotWaitForEachOther(t *testing.T) {
	s, server := newShop(t)
	for i := range relayBatch + 2 {
		no := fmt.Sprintf("OF-%d", i)
		s.mustOpen(t, no)
		request(t, server, http.MethodPost, "/orders/"+no+"/pay", newToken(t, server))
	}
	inHand, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	slow := make(chan int)
	go func() {
		n, err := s.relayOnce(t.Context(), func(ctx context.Context, m message) error {
			first.Do(func() { close(inHand); <-goOn })
			return s.ship(ctx, m)
		})
		if err != nil {
			t.Error(err)
		}
		slow <- n
	}()
	<-inHand
	if n, err := s.relayOnce(t.Context(), s.ship); n != 2 || err != nil {
		t.Errorf("second relay = %d, %v; want the 2 messages that the first has not in hand", n, err)
	}
	close(goOn)
	if n := <-slow; n != relayBatch {
		t.Errorf("first relay = %d, want %d", n, relayBatch)
	}
	s.wantRows(t, "outbox_parcels", relayBatch+2)
}

func TestUnknownOrderIsNotPaid(t *testing.T) {
	s, server := newShop(t)
	if status, _ := request(t, server, http.MethodPost, "/orders/OF-9/pay", newToken(t, server)); status != http.StatusConflict {
		t.Errorf("status %d, want 409", status)
	}
	s.wantRows(t, "outbox_messages", 0)
}
