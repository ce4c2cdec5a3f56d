package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// wholeServers puts a load of fresh submits on servers in turn.
func wholeServers(ctx context.Context, sc scale) ([]Fact, error) {
	roles := []string{roleBare, roleOurs, roleFiberBare, roleFiber}
	secret := newSecret()
	tokens, err := newTokens(secret)
	if err != nil {
		return nil, err
	}
	issue := func() string { return tokens.Issue("", "").Value }
	addrs := make([]string, len(roles))
	for i, role := range roles {
		addr, stop, err := startRole(ctx, role, secret)
		if err != nil {
			return nil, err
		}
		defer stop()
		addrs[i] = addr
	}
	slice := time.Duration(sc.of(400, 150)) * time.Millisecond
	var facts []Fact
	for _, conns := range []int{1, 8, 64} {
		rates := make([][]float64, len(roles))
		latencies := make([][]time.Duration, len(roles))
		var fs []func() error
		for i, role := range roles {
			header, key := "X-Submit-Token", issue
			if role == roleFiber || role == roleFiberBare {
				header, key = fiberKey, uuid
			}
			if _, _, err := load(addrs[i], conns, slice/4, header, key); err != nil { // warm up
				return nil, fmt.Errorf("%s: %w", role, err)
			}
			fs = append(fs, func() error {
				rate, all, err := load(addrs[i], conns, slice, header, key)
				if err != nil {
					return fmt.Errorf("%s: %w", role, err)
				}
				rates[i], latencies[i] = append(rates[i], rate), append(latencies[i], all...)
				return nil
			})
		}
		if err := turns(ctx, sc.of(sc.rounds, 3), fs...); err != nil {
			return nil, err
		}
		for i, role := range roles {
			slices.Sort(latencies[i])
			value := fmt.Sprintf("%.0f/s, p50 %s, p99 %s", spreadOf(rates[i]).Median,
				nanos(float64(percentile(latencies[i], 50))), nanos(float64(percentile(latencies[i], 99))))
			if i%2 == 1 {
				value += ", throughput " + span(spreadOf(quotients(rates[i], rates[i-1])), times) + " of its bare handler's"
			}
			facts = append(facts, Fact{What: fmt.Sprintf("%d connections, %s", conns, role), Value: value})
		}
	}
	return facts, nil
}

// load posts fresh submits over conns connections for a time, and returns the
// rate and how long each took.
func load(addr string, conns int, long time.Duration, header string, key func() string) (rate float64, all []time.Duration, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var clients []*rawClient
	for range conns {
		c, err := dial(addr)
		if err != nil {
			return 0, nil, err
		}
		defer c.close()
		clients = append(clients, c)
	}
	began := time.Now()
	for _, c := range clients {
		wg.Go(func() {
			mine := make([]time.Duration, 0, 1024)
			var failed error
			for at := began; at.Sub(began) < long && failed == nil; {
				failed = c.post(header, key())
				now := time.Now()
				mine = append(mine, now.Sub(at))
				at = now
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			if failed != nil {
				err = failed
			}
		})
	}
	wg.Wait()
	return float64(len(all)) / time.Since(began).Seconds(), all, err
}

// A rawClient speaks as much HTTP as these servers need: net/http's own client
// costs more than the servers that are measured on the same cores.
type rawClient struct {
	conn net.Conn
	in   *bufio.Reader
	out  bytes.Buffer
}

func dial(addr string) (*rawClient, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &rawClient{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *rawClient) close() { _ = c.conn.Close() }

func (c *rawClient) post(header, key string) error {
	c.out.Reset()
	fmt.Fprintf(&c.out, "POST /orders HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s",
		header, key, len(in), in)
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return err
	}
	status, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 201 ")) {
		return fmt.Errorf("answer %q", status)
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte("Idempotent-Replayed")) {
			return fmt.Errorf("a fresh submit was replayed")
		}
		if bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length != len(out) {
		return fmt.Errorf("a body of %d bytes, want %d", length, len(out))
	}
	_, err = io.CopyN(io.Discard, c.in, int64(length))
	return err
}
