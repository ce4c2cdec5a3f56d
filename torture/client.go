package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Submit is one token with all that its clients were told.
type Submit struct {
	Token string

	mu      sync.Mutex
	answers map[string]int // final answers and how often each came; guarded by mu
	lost    int            // clients that never got a final answer; guarded by mu
}

// send submits tok to one of the apps after another until the answer is final,
// as a client does that retries with its token.
func send(ctx context.Context, client *http.Client, addr func() string, tok string, kill bool) (answer string, err error) {
	for {
		answer, final := try(ctx, client, addr(), tok, kill)
		if final {
			return answer, nil
		}
		kill = false // a process dies once
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no final answer: %w", ctx.Err())
		case <-time.After(rand.N(60 * time.Millisecond)):
		}
	}
}

func try(ctx context.Context, client *http.Client, addr, tok string, kill bool) (answer string, final bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/orders", strings.NewReader(`{"item":"mug"}`))
	if err != nil {
		return err.Error(), true
	}
	req.Header.Set("X-Submit-Token", tok)
	req.Header.Set("Content-Type", "application/json")
	if kill {
		req.Header.Set(killHeader, "1")
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", false
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 500 || resp.StatusCode == http.StatusConflict {
		return "", false
	}
	return fmt.Sprintf("%d %s %s", resp.StatusCode, resp.Header.Get("Location"), body), true
}

func newClient() *http.Client {
	return &http.Client{
		Timeout:   25 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second},
	}
}

// duplicate submits s from several clients at once, some of which come late.
func (s *Submit) duplicate(ctx context.Context, client *http.Client, addr func() string, times int) {
	var wg sync.WaitGroup
	for i := range times {
		wg.Go(func() {
			if i > 0 {
				time.Sleep(rand.N(300 * time.Millisecond))
			}
			answer, err := send(ctx, client, addr, s.Token, false)
			s.mu.Lock()
			defer s.mu.Unlock()
			if err != nil {
				s.lost++
				return
			}
			if s.answers == nil {
				s.answers = make(map[string]int)
			}
			s.answers[answer]++
		})
	}
	wg.Wait()
}
