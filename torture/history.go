package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A Step is one line of a history: a store call, or its return. A call whose
// process was killed has no return.
type Step struct {
	ID     string // of the call, unique in the run
	At     int64  // nanoseconds; all processes share the machine's clock
	Return bool

	Key      string
	Op       string // claim, seal, release
	Owner    string
	Response uint64 // hash of the response sealed or found
	Result   string // won, pending, done, ok, lost, error; of a return
}

// recording returns a store that writes its calls to file. Lines are written in
// one piece and survive the death of the process.
func recording(s replay.Store, file *os.File) replay.Store {
	return &recordingStore{Store: s, file: file}
}

type recordingStore struct {
	replay.Store
	file *os.File
	seq  atomic.Int64
}

func (s *recordingStore) write(st Step) {
	line, err := json.Marshal(st)
	if err == nil {
		_, err = s.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err) // a history with holes proves nothing
	}
}

// call writes the call and returns what writes the return.
func (s *recordingStore) call(st Step) func(result string, response []byte) {
	st.ID = fmt.Sprintf("%d.%d", os.Getpid(), s.seq.Add(1))
	st.At = time.Now().UnixNano()
	s.write(st)
	return func(result string, response []byte) {
		st.Return, st.Result, st.At = true, result, time.Now().UnixNano()
		if response != nil {
			st.Response = hashOf(response)
		}
		s.write(st)
	}
}

func hashOf(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}

func (s *recordingStore) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	owner := fmt.Sprintf("%x", c.Owner)
	done := s.call(Step{Key: c.Key, Op: "claim", Owner: owner})
	rec, hold, err := s.Store.Claim(ctx, c)
	switch {
	case err != nil:
		done("error", nil)
		return rec, hold, err
	case hold != nil:
		done("won", nil)
	case rec.State == replay.Pending:
		done("pending", nil)
		return rec, nil, nil
	default:
		done("done", rec.Response)
		return rec, nil, nil
	}
	return rec, wrapHold(hold, func(h replay.Hold) replay.Hold {
		return &recordingHold{h, s, c.Key, owner}
	}), nil
}

func (s *recordingStore) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	return watch(ctx, s.Store, key)
}

type recordingHold struct {
	replay.Hold
	s          *recordingStore
	key, owner string
}

func (h *recordingHold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	done := h.s.call(Step{Key: h.key, Op: "seal", Owner: h.owner, Response: hashOf(response)})
	err := h.Hold.Seal(ctx, response, retention)
	switch {
	case err == nil:
		done("ok", nil)
	case errors.Is(err, replay.ErrLeaseLost):
		done("lost", nil)
	default:
		done("error", nil)
	}
	return err
}

func (h *recordingHold) Release(ctx context.Context) error {
	done := h.s.call(Step{Key: h.key, Op: "release", Owner: h.owner})
	err := h.Hold.Release(ctx)
	if err != nil {
		done("error", nil)
	} else {
		done("ok", nil)
	}
	return err
}

// readHistory reads the steps of one process. Its last line may be cut off.
func readHistory(r io.Reader) ([]Step, error) {
	var steps []Step
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var st Step
		if err := json.Unmarshal(lines.Bytes(), &st); err != nil {
			continue // killed while it wrote
		}
		steps = append(steps, st)
	}
	return steps, lines.Err()
}
