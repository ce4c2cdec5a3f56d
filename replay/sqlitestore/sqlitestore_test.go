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
			age(t, db, d)
		},
	})
}

// age makes all records older by d.
func age(t *testing.T, db *sql.DB, d time.Duration) {
	t.Helper()
	if _, err := db.Exec("UPDATE submitonce SET ends_at = ends_at - ?", d.Milliseconds()); err != nil {
		t.Fatal(err)
	}
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
	db := openDB(t, path)
	for {
		rec, h, err := s.Claim(t.Context(), replay.Claim{Key: key, Owner: owner(1), Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			if rec.State != replay.Pending || rec.LeaseLeft <= 0 || rec.LeaseLeft > 500*time.Millisecond {
				t.Fatalf("the dead owner's record is %+v, want pending for up to 500ms", rec)
			}
			age(t, db, 500*time.Millisecond)
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

// awaitDone looks each time that changed says something, until key is done.
func awaitDone(t *testing.T, s *sqlitestore.Store, key string, changed <-chan struct{}) {
	t.Helper()
	for {
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Fatal("the watcher has not been told")
		}
		if rec, err := s.Look(t.Context(), key); err != nil || rec.State == replay.Done {
			if string(rec.Response) != "r" {
				t.Errorf("Look = %q, %v; want r", rec.Response, err)
			}
			return
		}
	}
}

func TestWaitersOfAnotherStoreAreTold(t *testing.T) {
	for _, most := range []int{0, 1, 3} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d connections, one db %t", most, shared), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "shop.db")
				dbs := []*sql.DB{openDB(t, path), openDB(t, path)}
				if shared {
					dbs[1] = dbs[0]
				}
				var stores []*sqlitestore.Store
				for _, db := range dbs {
					db.SetMaxOpenConns(most)
					s, err := sqlitestore.New(t.Context(), db)
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = s.Close() }()
					stores = append(stores, s)
				}
				a, b := stores[0], stores[1]
				for i := range 5 {
					key := fmt.Sprint(i)
					_, h, err := a.Claim(t.Context(), replay.Claim{Key: key, Owner: owner(1), Lease: time.Minute})
					if err != nil {
						t.Fatal(err)
					}
					changed, stop, err := b.Watch(t.Context(), key)
					if err != nil {
						t.Fatal(err)
					}
					defer stop()
					time.Sleep(20 * time.Millisecond) // until it looks out
					for len(changed) > 0 {
						<-changed // of the claim
					}
					if err := h.Seal(t.Context(), []byte("r"), time.Hour); err != nil {
						t.Fatal(err)
					}
					awaitDone(t, b, key, changed)
				}
			})
		}
	}
}

func TestWatchingKeepsNoConnectionOfALimitedPool(t *testing.T) {
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprintf("limited before the first watch %t", early), func(t *testing.T) {
			db := openDB(t, filepath.Join(t.TempDir(), "shop.db"))
			if early {
				db.SetMaxOpenConns(1)
			}
			s, err := sqlitestore.New(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			changed, stop, err := s.Watch(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			<-changed // it looks out
			db.SetMaxOpenConns(1)
			for range 20 {
				time.Sleep(3 * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Fatalf("the application gets no connection: %v", err)
				}
				time.Sleep(6 * time.Millisecond)
				_ = tx.Rollback()
				cancel()
			}
			if _, h, err := s.Claim(t.Context(), replay.Claim{Key: "k", Owner: owner(1), Lease: time.Minute}); h == nil {
				t.Errorf("claim: %v", err)
			}
		})
	}
}

func TestAWatcherIsNotWokenWhileNothingChanges(t *testing.T) {
	for _, most := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			db := openDB(t, filepath.Join(t.TempDir(), "shop.db"))
			db.SetMaxOpenConns(most)
			s, err := sqlitestore.New(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			changed, stop, err := s.Watch(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			woken := 0
			for range 40 {
				var readers sync.WaitGroup
				for range 3 { // so that the pool has several
					readers.Go(func() { _, _ = s.Look(t.Context(), "k") })
				}
				readers.Wait()
				time.Sleep(3 * time.Millisecond)
				if len(changed) > 0 {
					<-changed
					woken++
				}
			}
			if woken > 8 { // once for each connection that it has not asked before
				t.Errorf("woken %d times", woken)
			}
		})
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
