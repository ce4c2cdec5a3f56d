package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay/memstore"
)

// wholeServer puts a load of fresh submits on a server over loopback.
func wholeServer() ([]Fact, error) {
	var facts []Fact
	for _, guarded := range []bool{false, true} {
		store, err := memstore.New(memstore.Config{MaxEntries: 1 << 22, MaxBytes: 4 << 30})
		if err != nil {
			return nil, err
		}
		g, tokens, err := newGuard(store)
		if err != nil {
			return nil, err
		}
		app, name := http.Handler(http.HandlerFunc(order)), "bare handler"
		if guarded {
			app, name = nethttp.Middleware(g)(app), "submitonce, memory"
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		server := &http.Server{Handler: app, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(l) }()
		for _, conns := range []int{1, 8, 64} {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
			var mu sync.Mutex
			var all []time.Duration
			var wg sync.WaitGroup
			var failed error
			began := time.Now()
			for range conns {
				wg.Go(func() {
					var mine []time.Duration
					var err error
					for time.Since(began) < 2*time.Second && err == nil {
						at := time.Now()
						err = post(client, "http://"+l.Addr().String()+"/orders", tokens.Issue("", "").Value)
						mine = append(mine, time.Since(at))
					}
					mu.Lock()
					defer mu.Unlock()
					all = append(all, mine...)
					if err != nil {
						failed = err
					}
				})
			}
			wg.Wait()
			took := time.Since(began)
			client.CloseIdleConnections()
			if failed != nil {
				return nil, failed
			}
			slices.Sort(all)
			facts = append(facts, Fact{
				fmt.Sprintf("whole server over loopback with its client on the same cores, %d connections, %s", conns, name),
				fmt.Sprintf("%.0f/s, p50 %s, p99 %s", float64(len(all))/took.Seconds(), round(all[len(all)/2]), round(all[len(all)*99/100])),
			})
		}
		_ = server.Close()
		_ = store.Close()
	}
	return facts, nil
}

func post(client *http.Client, url, tok string) error {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(in))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Submit-Token", tok)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusCreated {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return err
}
