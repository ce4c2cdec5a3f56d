package submittest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// DefaultTimes is what [Attack.Times] is if it is not set.
const DefaultTimes = 20

// An Attack says what to send and what must happen once.
type Attack struct {
	// Request returns one submit. It is called for each send, also concurrently,
	// and has to return the same submit each time, with a body of its own to read:
	// the same token and the same content. It has to be set.
	Request func() *http.Request

	// Effects returns how many effects there are by now, such as rows in a table
	// or mails in a fake outbox. Those from before the attack do not count. It has
	// to be set.
	Effects func() int

	// Times is how many requests are sent at once, and then again one after the
	// other. The default is 20.
	Times int

	// Ignore names headers that may differ between answers, because middleware
	// outside the guard makes them afresh, such as X-Request-Id. Date and the
	// marker of a replay always may.
	Ignore []string

	// ReplayedHeader is that of the guard's Config, if it has another than
	// Idempotent-Replayed.
	ReplayedHeader string
}

// Once sends the request Times times at once and Times times one after the
// other through h, and reports an error to t unless the effect has happened
// exactly once and all answers are equal in status, body and headers. The error
// shows the answers and what sets them apart. A panic of h is reported, too. Once
// returns the first answer, for further checks; its body can be read.
func Once(t testing.TB, h http.Handler, a Attack) *http.Response {
	t.Helper()
	if a.Request == nil || a.Effects == nil {
		t.Fatalf("submittest: Attack.Request and Attack.Effects have to be set")
	}
	if a.Times <= 0 {
		a.Times = DefaultTimes
	}
	before := a.Effects()
	answers := a.send(h)
	r := report{
		target:  answers[0].target,
		times:   a.Times,
		effects: a.Effects() - before,
		groups:  a.group(answers),
		tokens:  countTokens(answers),
	}
	if text := r.text(); text != "" {
		t.Errorf("%s", text)
	}
	first := answers[0].response
	first.Body = io.NopCloser(bytes.NewReader(answers[0].body))
	return first
}

// An answer is what came of one request.
type answer struct {
	number   int // from 1
	target   string
	tokens   string // what the request carried
	response *http.Response
	body     []byte
	panicked any
}

func (a *Attack) send(h http.Handler) []answer {
	answers := make([]answer, 2*a.Times)
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(a.Times)
	for i := range a.Times {
		done.Go(func() {
			r := a.Request()
			ready.Done()
			<-start
			answers[i] = serve(h, r)
		})
	}
	ready.Wait() // so that they come as close together as they can
	close(start)
	done.Wait()
	for i := a.Times; i < len(answers); i++ {
		answers[i] = serve(h, a.Request())
	}
	for i := range answers {
		answers[i].number = i + 1
	}
	return answers
}

func serve(h http.Handler, r *http.Request) (a answer) {
	a.target = r.Method + " " + r.URL.RequestURI()
	a.tokens = fmt.Sprint(r.Header.Values(token.HeaderName), r.Header.Values(replay.IdempotencyKeyHeader))
	w := httptest.NewRecorder()
	defer func() {
		a.panicked = recover()
		a.response = w.Result()
		a.body = w.Body.Bytes()
	}()
	h.ServeHTTP(w, r)
	return a
}

// A group is a set of equal answers.
type group struct {
	answer          // the first of them
	header   string // what counts of the header
	count    int
	replayed int
}

// group puts equal answers together, in the order of their first ones.
func (a *Attack) group(answers []answer) []*group {
	marker := a.ReplayedHeader
	if marker == "" {
		marker = replay.DefaultReplayedHeader
	}
	ignore := append([]string{"Date", marker}, a.Ignore...)
	var groups []*group
	for _, one := range answers {
		h := one.response.Header.Clone()
		replayed := 0
		if h.Get(marker) != "" {
			replayed = 1
		}
		for _, name := range ignore {
			h.Del(name)
		}
		header := text(h) + text(one.response.Trailer)
		i := slices.IndexFunc(groups, func(g *group) bool {
			return g.response.StatusCode == one.response.StatusCode && bytes.Equal(g.body, one.body) &&
				g.header == header && (g.panicked == nil) == (one.panicked == nil)
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{answer: one, header: header})
		}
		groups[i].count++
		groups[i].replayed += replayed
	}
	return groups
}

func text(h http.Header) string {
	var b bytes.Buffer
	_ = h.Write(&b) // to memory, in order of names
	return b.String()
}

// countTokens returns how many different tokens or keys the requests carried in
// their headers.
func countTokens(answers []answer) int {
	different := make(map[string]bool)
	for _, a := range answers {
		different[a.tokens] = true
	}
	return len(different)
}
