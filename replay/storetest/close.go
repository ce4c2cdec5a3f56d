package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/submitonce/submitonce/replay"
)

const (
	closing = "A Store that starts a goroutine or a timer is an [io.Closer]; Close ends them, waits for them, and" +
		" may be called twice."
	closed = "After Close, methods return [ErrClosed]."
)

var closeTests = []test{
	{
		name:     "close leaves nothing running",
		promise:  closing,
		needs:    closer,
		realTime: true,
		run: func(t *trial) {
			t.use() // what is made once and stays, such as connections of a pool
			name := key()
			var s replay.Store
			var most int
			// Other cases may run at the same time: only goroutines that were started
			// from in here bear the label.
			pprof.Do(t.Context(), pprof.Labels(labelled, name), func(context.Context) {
				s = t.h.New(t.T)
				work := &trial{t.T, t.h, s, s}
				if _, err := s.Look(t.Context(), key()); err != nil {
					t.Fatalf("look: %v", err)
				}
				most = len(t.goroutines(name)) - 1 // without this one
				work.use()
				closeStore(t.T, s)
			})
			owned := reflect.Indirect(reflect.ValueOf(s)).Type().PkgPath() + "."
			var left []string
			for deadline := time.Now().Add(patience / 4); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				left = t.goroutines(name)
				if len(left) <= most && !slices.ContainsFunc(left, func(g string) bool { return strings.Contains(g, owned) }) {
					return
				}
			}
			t.Errorf("%d goroutines that the store started run after close, %d ran after New:\n%s",
				len(left), most, strings.Join(left, "\n\n"))
		},
	},
	{
		name:    "close may be called twice",
		promise: closing,
		needs:   closer,
		run: func(t *trial) {
			t.use()
			for range 2 {
				if err := t.store.(io.Closer).Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
		},
	},
	{
		name:    "methods say that the store is closed",
		promise: closed,
		needs:   closer,
		run: func(t *trial) {
			hold := t.win(t.store, key(), 1)
			sealed := t.win(t.store, key(), 1)
			t.seal(sealed, "x")
			closeStore(t.T, t.store)
			calls := map[string]func() error{
				"claim": func() error {
					_, h, err := t.store.Claim(t.Context(), claimOf(key()))
					if h != nil {
						t.Error("a closed store gave a hold")
					}
					return err
				},
				"look": func() error { _, err := t.store.Look(t.Context(), key()); return err },
			}
			if w, ok := t.store.(replay.Watcher); ok {
				calls["watch"] = func() error { _, _, err := w.Watch(t.Context(), key()); return err }
			}
			if s, ok := t.store.(replay.Sweeper); ok {
				calls["sweep"] = func() error { _, err := s.Sweep(t.Context(), 10); return err }
			}
			if !t.h.Transactional { // there, the hold has ended with the store
				calls["extend"] = func() error { return hold.Extend(t.Context(), lease) }
				calls["seal"] = func() error { return hold.Seal(t.Context(), nil, retention) }
				calls["release"] = func() error { return hold.Release(t.Context()) }
			}
			for name, call := range calls {
				t.prompt(name, func() {
					if err := call(); !errors.Is(err, replay.ErrClosed) {
						t.Errorf("%s after close: %v, want ErrClosed", name, err)
					}
				})
			}
		},
	},
	{
		name:    "close does not wait for waiters",
		promise: closing,
		needs:   closer,
		run: func(t *trial) {
			t.win(t.store, key(), 1)
			if w, ok := t.store.(replay.Watcher); ok {
				_, stop, err := w.Watch(t.Context(), key())
				if err != nil {
					t.Fatalf("watch: %v", err)
				}
				defer stop() // after Close
			}
			t.prompt("close", func() { closeStore(t.T, t.store) })
		},
	},
	{
		name:    "close in the middle of calls ends them",
		promise: closing,
		needs:   closer,
		run: func(t *trial) {
			t.prompt("close among calls", func() {
				crowd(33, func(i int) {
					if i == 0 {
						closeStore(t.T, t.store)
						return
					}
					for range 5 {
						_, hold, err := t.store.Claim(t.Context(), claimOf(key()))
						if err == nil {
							_ = hold.Seal(t.Context(), []byte("x"), retention) // closed or not
						}
					}
				})
			})
			if _, _, err := t.store.Claim(t.Context(), claimOf(key())); !errors.Is(err, replay.ErrClosed) {
				t.Errorf("claim after close: %v, want ErrClosed", err)
			}
		},
	},
}

// use does a bit of everything that the store can.
func (t *trial) use() {
	t.Helper()
	for i := range 20 {
		k := key()
		hold := t.win(t.store, k, 1)
		if _, ok := t.store.(replay.Watcher); ok {
			_, stop := t.watch(t.store, k)
			t.seal(hold, "x")
			if i%2 == 0 { // the others are ended by Close
				stop()
			}
		} else {
			t.seal(hold, "x")
		}
		t.lose(t.store, k)
		if s, ok := t.store.(replay.Sweeper); ok {
			if _, err := s.Sweep(t.Context(), 10); err != nil {
				t.Fatalf("sweep: %v", err)
			}
		}
	}
}

const labelled = "storetest" // the key of the label

// goroutines returns the stacks of the goroutines that bear the label.
func (t *trial) goroutines(name string) (all []string) {
	t.Helper()
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1) // a buffer takes all
	for same := range strings.SplitSeq(profile.String(), "\n\n") {
		// "2 @ 0x1 0x2", then "# labels: {...}", then the calls
		head, stack, _ := strings.Cut(same, "\n# labels: ")
		if !strings.HasPrefix(stack, fmt.Sprintf("{%q:%q", labelled, name)) {
			continue
		}
		head = head[strings.LastIndexByte(head, '\n')+1:] // the first one follows the title
		n, err := strconv.Atoi(strings.Fields(head)[0])
		if err != nil {
			t.Fatalf("a goroutine profile of a form that storetest does not know: %q", same)
		}
		for range n {
			all = append(all, stack)
		}
	}
	return all
}
