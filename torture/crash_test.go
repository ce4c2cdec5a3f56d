package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/submitonce/submitonce/internal/testserver"
)

// TestMain lets the test binary be an app, which the tests kill.
func TestMain(m *testing.M) {
	if text := os.Getenv(appEnv); text != "" {
		fail(runApp(text))
		return
	}
	testserver.Main(m)
}

func newServers(t *testing.T) *Servers {
	t.Helper()
	s, err := startServers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func newProcess(t *testing.T, c AppConfig) *Process {
	t.Helper()
	p, err := startProcess(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// crashed is what has to be found after a crash and a retry.
type crashed struct {
	attempts []int // of the effects, in order
	runs     int
	waits    bool // the retry has to wait for the lease
}

func want(m Mode, p Point) crashed {
	once, twice := []int{1}, []int{1, 2}
	switch {
	case p == BeforeClaim:
		return crashed{once, 1, false}
	case p == AfterSeal:
		return crashed{once, 1, false}
	case m.transactional() && p == AfterClaim:
		return crashed{once, 1, false}
	case m.transactional(): // the first run is rolled back, and a second one follows at once
		return crashed{once, 2, false}
	case p == AfterClaim:
		return crashed{[]int{2}, 1, true}
	case p == BeforeEffect:
		return crashed{[]int{2}, 2, true}
	}
	return crashed{twice, 2, true} // the handler sees attempt 2
}

// TestCrashMatrix kills the process of an app at each point of a request's life,
// and submits again to another one.
func TestCrashMatrix(t *testing.T) {
	const rounds = 20
	lease := 400 * time.Millisecond
	servers := newServers(t)
	for _, mode := range allModes {
		for _, point := range Points {
			t.Run(fmt.Sprintf("%s, killed %s", mode, point), func(t *testing.T) {
				t.Parallel()
				c := servers.app(mode)
				c.Lease, c.KillAt = lease, point
				victim, survivor := newProcess(t, c), newProcess(t, c)
				tokens, err := newTokens()
				if err != nil {
					t.Fatal(err)
				}
				client := newClient()
				defer client.CloseIdleConnections()
				for round := range rounds {
					tok := tokens.Issue("", "").Value
					if answer, final := try(t.Context(), client, victim.config.Addr, tok, true); final {
						t.Fatalf("round %d: the client was answered %q, want no answer", round, answer)
					}
					if err := victim.waitDead(); err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					answer, err := send(ctx, client, func() string { return survivor.config.Addr }, tok, false)
					cancel()
					if err != nil || !strings.HasPrefix(answer, "201 ") {
						t.Fatalf("round %d: the retry was answered %q, %v; want 201", round, answer, err)
					}
					took := time.Since(began)
					expected := want(mode, point)
					if expected.waits && took < lease/4 {
						t.Errorf("round %d: answered after %v, before the lease of %v could run out", round, took, lease)
					}
					check(t, servers, tok, answer, expected)
					if err := victim.start(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

func check(t *testing.T, s *Servers, tok, answer string, want crashed) {
	t.Helper()
	tokens, err := newTokens()
	if err != nil {
		t.Fatal(err)
	}
	claims, err := tokens.Verify(tok, "", "")
	if err != nil {
		t.Fatal(err)
	}
	key := "t" + string(claims.ID.AppendKey(nil)) + ".%"
	rows, err := s.pool.Query(t.Context(), "SELECT attempt, name FROM effects WHERE key LIKE $1 ORDER BY attempt", key)
	if err != nil {
		t.Fatal(err)
	}
	var attempts []int
	var last string
	for rows.Next() {
		var attempt int
		if err := rows.Scan(&attempt, &last); err != nil {
			t.Fatal(err)
		}
		attempts = append(attempts, attempt)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	var runs int
	if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM runs WHERE key LIKE $1", key).Scan(&runs); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(attempts, want.attempts) || runs != want.runs {
		t.Errorf("effects of attempts %v in %d runs, want %v in %d", attempts, runs, want.attempts, want.runs)
	}
	if !strings.Contains(answer, last) {
		t.Errorf("the answer is %q, want that of the last effect, %s", answer, last)
	}
}
