package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// A submit is what the journal knows of one POST /orders, as the page draws it.
// Times are milliseconds since 1970, 0 for what has not happened.
type submit struct {
	ID       int64   `json:"id"`
	Round    string  `json:"round,omitempty"`
	Trouble  string  `json:"trouble,omitempty"`
	Key      string  `json:"key,omitempty"`   // short form of the record's key
	Group    string  `json:"group,omitempty"` // of its token, known before the key is
	Began    float64 `json:"began"`
	RunBegan float64 `json:"run_began,omitempty"` // the handler's run
	RunEnded float64 `json:"run_ended,omitempty"`
	Ended    float64 `json:"ended,omitempty"`
	Left     float64 `json:"left,omitempty"` // the client hung up
	Attempt  int     `json:"attempt,omitempty"`
	Waited   bool    `json:"waited,omitempty"`
	Replayed bool    `json:"replayed,omitempty"`
	Sealed   bool    `json:"sealed,omitempty"`
	Cut      bool    `json:"cut,omitempty"`
	Status   int     `json:"status,omitempty"`
	OrderNo  string  `json:"order_no,omitempty"`
	Refused  string  `json:"refused,omitempty"` // the guard's reason
	Warning  bool    `json:"fresh_token,omitempty"`

	trouble trouble
	session string
}

const journalLen = 500 // submits

// A journal keeps the last submits and tells live pages of each change.
type journal struct {
	mu      sync.Mutex
	last    int64
	submits []*submit // by ID
	pages   map[*livePage]bool
	closed  bool
}

func newJournal() *journal { return &journal{pages: make(map[*livePage]bool)} }

type submitKey struct{}

func submitOf(ctx context.Context) *submit {
	s, _ := ctx.Value(submitKey{}).(*submit)
	return s
}

// change lets edit work on the submit of ctx, and tells the pages.
func (j *journal) change(ctx context.Context, edit func(s *submit)) {
	s := submitOf(ctx)
	if s == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	edit(s)
	j.tell(s)
}

// tell passes a change on to the pages that may see it. The lock is held.
func (j *journal) tell(s *submit) {
	for page := range j.pages {
		if page.sees(s) && !page.tell(*s) {
			delete(j.pages, page)
			close(page.changes)
		}
	}
}

// middleware writes down when a submit came and how it ended.
func (j *journal) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/orders" {
			next.ServeHTTP(w, r)
			return
		}
		t := readTrouble(r.Header)
		s := &submit{Began: now(), Round: t.round, Trouble: t.name, trouble: t, session: subject(r)}
		if value := r.Header.Get(token.HeaderName); value != "" {
			s.Group = shortKey(value)
		}
		j.add(s)
		ctx := context.WithValue(r.Context(), submitKey{}, s)
		stop := context.AfterFunc(r.Context(), func() {
			j.change(ctx, func(s *submit) { s.Left = now() })
		})
		answer := &watchedWriter{ResponseWriter: w}
		defer func() {
			stop()
			j.change(ctx, func(s *submit) {
				s.Ended = now()
				s.Status = answer.status
				s.Cut = answer.status == 0 // nothing was sent
			})
		}()
		next.ServeHTTP(answer, r.WithContext(ctx))
	})
}

func (j *journal) add(s *submit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	s.ID = j.last
	if len(j.submits) == journalLen {
		j.submits = append(j.submits[:0], j.submits[1:]...)
	}
	j.submits = append(j.submits, s)
	j.tell(s)
}

// observe writes down what the guard did.
func (j *journal) observe(ctx context.Context, e replay.Event) {
	if e.Request == nil {
		return
	}
	j.change(e.Request.Context(), func(s *submit) {
		if e.Key != "" {
			s.Key = shortKey(e.Key)
			s.Group = cmp.Or(s.Group, s.Key)
		}
		switch e.Kind {
		case replay.Claimed, replay.TakenOver:
			s.Attempt = e.Attempt
		case replay.Waited:
			s.Waited = true
		case replay.Replayed:
			s.Replayed = true
		case replay.Sealed:
			s.Sealed = true
		case replay.Mismatch:
			s.Refused = "another payload"
		case replay.Refused:
			s.Refused = reason(e.Err)
		case replay.FreshToken:
			s.Warning = true
		}
	})
}

// run writes down that the handler runs, and, when what it returns is called,
// that it has run.
func (j *journal) run(ctx context.Context) (done func()) {
	j.change(ctx, func(s *submit) { s.RunBegan, s.RunEnded = now(), 0 })
	return func() { j.change(ctx, func(s *submit) { s.RunEnded = now() }) }
}

// ordered writes down which order came of the run.
func (j *journal) ordered(ctx context.Context, no string) {
	j.change(ctx, func(s *submit) { s.OrderNo = no })
}

// A tally says what the submits of one order came to.
type tally struct {
	Requests int
	Runs     int // of the handler
	Refusals int // of those: it refused a field, and the form was corrected
}

// tallyOf counts the submits that shared the key of the order no.
func (j *journal) tallyOf(no string) tally {
	j.mu.Lock()
	defer j.mu.Unlock()
	var t tally
	i := slices.IndexFunc(j.submits, func(s *submit) bool { return s.OrderNo == no })
	if i < 0 {
		return t
	}
	for _, s := range j.submits {
		if s.Key != j.submits[i].Key {
			continue
		}
		t.Requests++
		if s.RunBegan > 0 {
			t.Runs++
			if s.OrderNo == "" {
				t.Refusals++
			}
		}
	}
	return t
}

func reason(err error) string {
	var pending *replay.PendingError
	var expired *replay.ExpiredError
	switch {
	case errors.Is(err, replay.ErrMismatch):
		return "another payload"
	case errors.Is(err, replay.ErrMissingKey):
		return "no token"
	case errors.Is(err, replay.ErrMalformedKey):
		return "malformed token"
	case errors.Is(err, replay.ErrInvalidToken):
		return "somebody else's token"
	case errors.Is(err, replay.ErrStoreAway):
		return "store away"
	case errors.As(err, &expired):
		return "token expired"
	case errors.As(err, &pending):
		return "still in progress"
	}
	return "refused"
}

// shortKey tells keys apart on the page without showing them.
func shortKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:4])
}

func now() float64 { return float64(time.Now().UnixMicro()) / 1000 }
