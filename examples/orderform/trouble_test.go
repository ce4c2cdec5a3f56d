package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRetryAfterACutAnswerGetsTheOrder(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		token := c.token("form=order")
		cut := []string{"X-Submit-Token", token, "Content-Type", asJSON, "X-Demo-Cut", "once"}
		if a, err := c.try(http.MethodPost, "/orders", `{"item":"mug","quantity":1}`, cut...); !errors.Is(err, io.EOF) {
			t.Fatalf("first answer = %v, %v; want the line to be dead", a, err)
		}
		orders := c.orders()
		if len(orders) != 1 {
			t.Fatalf("orders %v, want one", orders)
		}
		a := c.do(http.MethodPost, "/orders", `{"item":"mug","quantity":1}`, cut...)
		c.want(a, http.StatusCreated, orders[0].No)
		if !a.replayed() {
			t.Error("the retry was not answered with a replay")
		}
		c.wantOrders(1)
	})
}

func TestHandlerTakesTheTimeItIsTold(t *testing.T) {
	slow := func(o *options) { o.delay = 80 * time.Millisecond }
	everyFramework(t, func(t *testing.T, c *client) {
		for _, tt := range []struct {
			header string
			least  time.Duration
		}{{"0s", 80 * time.Millisecond}, {"160ms", 160 * time.Millisecond}, {"nonsense", 80 * time.Millisecond}} {
			began := time.Now()
			c.want(c.order(c.token(""), asJSON, `{"item":"mug","quantity":1}`, "X-Demo-Delay", tt.header), http.StatusCreated)
			if took := time.Since(began); took < tt.least {
				t.Errorf("X-Demo-Delay %s: took %v, want at least %v", tt.header, took, tt.least)
			}
		}
	}, slow)
}

// A stream is an open page that hears of submits.
type stream struct {
	t     *testing.T
	body  io.ReadCloser
	lines *bufio.Scanner
}

func (c *client) live() *stream {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.base+"/demo/live", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { resp.Body.Close() })
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
		c.t.Fatalf("GET /demo/live = %d %s", resp.StatusCode, got)
	}
	return &stream{c.t, resp.Body, bufio.NewScanner(resp.Body)}
}

// past returns the submits that were there when the page opened.
func (s *stream) past() (past []submit) {
	s.t.Helper()
	s.next("past", &past)
	return past
}

func (s *stream) next(event string, v any) {
	s.t.Helper()
	for found := false; s.lines.Scan(); {
		line := s.lines.Text()
		if data, ok := strings.CutPrefix(line, "data: "); ok && found {
			if err := json.Unmarshal([]byte(data), v); err != nil {
				s.t.Fatal(err)
			}
			return
		}
		found = line == "event: "+event
	}
	s.t.Fatalf("the stream ended before %s: %v", event, s.lines.Err())
}

// ended reads on until n submits have ended, and returns them by what they did.
func (s *stream) ended(n int) map[string]int {
	s.t.Helper()
	what := make(map[string]int)
	for n > 0 {
		var e submit
		s.next("submit", &e)
		if e.Ended == 0 {
			continue
		}
		n--
		switch {
		case e.Cut:
			what["cut"]++
		case e.RunEnded > 0:
			what["ran"]++
		case e.Replayed && e.Waited:
			what["waited"]++
		case e.Replayed:
			what["replayed"]++
		case e.Refused != "":
			what[e.Refused]++
		}
	}
	return what
}

func TestLivePageHearsWhatBecameOfEachSubmit(t *testing.T) {
	everyFramework(t, func(t *testing.T, c *client) {
		page := c.live()
		if past := page.past(); len(past) != 0 {
			t.Fatalf("past %v, want none", past)
		}
		token := c.token("form=order")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { c.order(token, asJSON, `{"item":"mug","quantity":1}`, "X-Demo-Delay", "200ms") })
		}
		wg.Wait()
		c.order(token, asJSON, `{"item":"mug","quantity":1}`)
		c.order(token, asJSON, `{"item":"mug","quantity":2}`)
		c.order("", asJSON, `{"item":"mug","quantity":1}`)
		got := page.ended(7)
		// A busy machine may send one of the four so late that it has nothing to wait for.
		got["answered"] = got["waited"] + got["replayed"]
		want := map[string]int{"ran": 1, "answered": 4, "another payload": 1, "no token": 1}
		for what, n := range want {
			if got[what] != n {
				t.Errorf("%s: %d submits, want %d (all: %v)", what, got[what], n, got)
			}
		}
		if past := c.live().past(); len(past) != 7 {
			t.Errorf("a page that opens later sees %d submits, want 7", len(past))
		}
	})
}

func TestLivePageSeesItsOwnSessionAndCurl(t *testing.T) {
	server := newTestServer(t, options{framework: "nethttp", store: "memory"})
	curl := newClient(t, server)
	alice, bob := curl.browser(), curl.browser()
	for _, c := range []*client{alice, bob} {
		c.get("/")
	}
	for _, c := range []*client{curl, alice, alice, bob} {
		c.want(c.order(c.token(""), asJSON, `{"item":"mug","quantity":1}`), http.StatusCreated)
	}
	for _, tt := range []struct {
		name string
		c    *client
		want int
	}{{"curl", curl, 1}, {"alice", alice, 3}, {"bob", bob, 2}} {
		if got := len(tt.c.live().past()); got != tt.want {
			t.Errorf("%s sees %d submits, want %d", tt.name, got, tt.want)
		}
	}
}

func TestLivePageThatIsTooSlowIsLetGo(t *testing.T) {
	j := newJournal()
	page := &livePage{changes: make(chan submit, 2)}
	if _, ok := j.open(page); !ok {
		t.Fatal("the journal is closed")
	}
	for range 4 {
		j.add(new(submit))
	}
	n := 0
	for range page.changes { // ends, because the page's channel is closed
		n++
	}
	if n != 2 {
		t.Errorf("the page got %d changes, want 2", n)
	}
	j.close()
	if _, ok := j.open(page); ok {
		t.Error("a closed journal lets a page in")
	}
}

func TestJournalForgetsTheOldest(t *testing.T) {
	j := newJournal()
	for range journalLen + 3 {
		j.add(new(submit))
	}
	past, _ := j.open(new(livePage))
	if len(past) != journalLen || past[0].ID != 4 {
		t.Errorf("%d submits from %d on, want %d from 4 on", len(past), past[0].ID, journalLen)
	}
}
