package sqlitestore_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/sqlitestore"
	"github.com/submitonce/submitonce/replay/storetest"
)

const childEnv = "SUBMITONCE_SQLITE_CHILD"

// TestMain lets the test binary be another process on the same file.
func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := child(strings.Fields(text)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func openDB(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sqlitestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func openStore(t testing.TB, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.New(t.Context(), openDB(t, path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	var mu sync.Mutex
	paths := make(map[replay.Store]string)
	storetest.Run(t, storetest.Harness{
		New: func(t *testing.T) replay.Store {
			path := filepath.Join(t.TempDir(), "a b?c#d.db") // a name that has to be escaped
			s := openStore(t, path)
			mu.Lock()
			defer mu.Unlock()
			paths[s] = path
			return s
		},
		Peer: func(t *testing.T, s replay.Store) replay.Store {
			mu.Lock()
			defer mu.Unlock()
			return openStore(t, paths[s])
		},
		Advance: func(t *testing.T, s replay.Store, d time.Duration) {
			mu.Lock()
			path := paths[s]
			mu.Unlock()
			db := openDB(t, path)
			defer func() { _ = db.Close() }()
			if _, err := db.Exec("UPDATE submitonce SET ends_at = ends_at - ?", d.Milliseconds()); err != nil {
				t.Fatal(err)
			}
		},
	})
}

func owner(n byte) (o replay.Owner) {
	o[0] = n
	return o
}

// child is another process: it claims and waits to be killed, or seals one key
// after another and says which.
func child(args []string) error {
	ctx := context.Background()
	db, err := sqlitestore.Open(args[1])
	if err != nil {
		return err
	}
	s, err := sqlitestore.New(ctx, db)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		key := fmt.Sprintf("%s%d", args[0], i)
		_, h, err := s.Claim(ctx, replay.Claim{Key: key, Owner: owner(7), Lease: 500 * time.Millisecond})
		if err != nil {
			return err
		}
		if args[0] == "claim" {
			fmt.Println(key)
			select {}
		}
		if err := h.Seal(ctx, []byte(strings.Repeat(key, 100)), time.Hour); err != nil {
			return err
		}
		fmt.Println(key)
	}
}

// startChild starts this binary as another process, and returns what it says.
func startChild(t *testing.T, work, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+work+" "+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

func TestKilledBetweenClaimAndSeal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	s := openStore(t, path)
	cmd, says := startChild(t, "claim", path)
	if !says.Scan() {
		t.Fatal("the child has not claimed")
	}
	key := says.Text()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for {
		rec, h, err := s.Claim(t.Context(), replay.Claim{Key: key, Owner: owner(1), Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			if rec.State != replay.Pending || rec.LeaseLeft <= 0 || rec.LeaseLeft > 500*time.Millisecond {
				t.Fatalf("the dead owner's record is %+v, want pending for up to 500ms", rec)
			}
			time.Sleep(rec.LeaseLeft + time.Millisecond)
			continue
		}
		if rec.Attempt != 2 {
			t.Errorf("attempt %d, want 2", rec.Attempt)
		}
		return
	}
}

func TestKilledWhileSealing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	sealed := 0
	for round := range 5 {
		cmd, says := startChild(t, fmt.Sprintf("seal%d-", round), path)
		var keys []string
		for range 20 + round*7 {
			if !says.Scan() {
				t.Fatal("the child has ended")
			}
			keys = append(keys, says.Text())
		}
		_ = cmd.Process.Kill()
		for says.Scan() { // what it said before it died
			keys = append(keys, says.Text())
		}
		_ = cmd.Wait()

		s := openStore(t, path)
		for _, key := range keys {
			rec, err := s.Look(t.Context(), key)
			if err != nil || rec.State != replay.Done || string(rec.Response) != strings.Repeat(key, 100) {
				t.Errorf("%s: %v %.20q, %v; want its response", key, rec.State, rec.Response, err)
			}
			sealed++
		}
	}
	var ok string
	if err := openDB(t, path).QueryRow("PRAGMA integrity_check").Scan(&ok); err != nil || ok != "ok" {
		t.Errorf("integrity check: %s, %v", ok, err)
	}
	if sealed < 100 {
		t.Errorf("only %d records were sealed", sealed)
	}
}

func TestWaitersInAnotherProcessAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	a, b := openStore(t, path), openStore(t, path)
	_, h, err := a.Claim(t.Context(), replay.Claim{Key: "k", Owner: owner(1), Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	changed, stop, err := b.Watch(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := h.Seal(t.Context(), []byte("r"), time.Hour); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Fatal("the watcher has not been told")
		}
		if rec, err := b.Look(t.Context(), "k"); err != nil || rec.State == replay.Done {
			if string(rec.Response) != "r" {
				t.Errorf("Look = %q, %v; want r", rec.Response, err)
			}
			return
		}
	}
}

func TestApplicationSharesTheFile(t *testing.T) {
	db := openDB(t, filepath.Join(t.TempDir(), "shop.db"))
	if _, err := db.Exec("CREATE TABLE orders (key BLOB UNIQUE)"); err != nil {
		t.Fatal(err)
	}
	s, err := sqlitestore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	tx, err := db.Begin() // the application writes; a claim waits for it
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, _, err := s.Claim(ctx, replay.Claim{Key: "k", Owner: owner(1), Lease: time.Minute}); err == nil {
		t.Error("a claim beside an open write transaction succeeded")
	} else if took := time.Since(began); took > 5*time.Second {
		t.Errorf("gave up after %v, want 50ms", took)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, h, err := s.Claim(t.Context(), replay.Claim{Key: "k", Owner: owner(1), Lease: time.Minute}); h == nil {
		t.Errorf("claim after the commit: %v", err)
	}
}
