package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// A livePage is a page that hears of changes while it is open.
type livePage struct {
	session string
	changes chan submit
}

// livePageLen is how many changes a page may be behind; one that is slower than
// that is closed, and comes back.
const livePageLen = 1024

// tell passes a change on, and reports false if the page is too far behind.
func (p *livePage) tell(s submit) bool {
	select {
	case p.changes <- s:
		return true
	default:
		return false
	}
}

// sees reports whether the page may see s: its own session's submits, and those
// without a session, such as those of curl.
func (p *livePage) sees(s *submit) bool { return s.session == "" || s.session == p.session }

// live answers GET /demo/live with the submits there are and then with each
// change, as an event stream.
func (j *journal) live(w http.ResponseWriter, r *http.Request) {
	page := &livePage{session: subject(r), changes: make(chan submit, livePageLen)}
	past, ok := j.open(page)
	if !ok {
		http.Error(w, "The shop is closing.", http.StatusServiceUnavailable)
		return
	}
	defer j.leave(page)

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	send := func(event string, v any) error {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data); err != nil {
			return err
		}
		return out.Flush()
	}
	// The page draws by the server's clock, so it has to know it.
	if send("clock", now()) != nil || send("past", past) != nil {
		return
	}
	beat := time.NewTicker(15 * time.Second)
	defer beat.Stop()
	for {
		select {
		case s, ok := <-page.changes:
			if !ok || send("submit", s) != nil {
				return
			}
		case <-beat.C:
			if send("clock", now()) != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// open lets page hear of changes, and returns what it has missed.
func (j *journal) open(page *livePage) (past []submit, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, false
	}
	past = []submit{}
	for _, s := range j.submits {
		if page.sees(s) {
			past = append(past, *s)
		}
	}
	j.pages[page] = true
	return past, true
}

func (j *journal) leave(page *livePage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.pages, page)
}

// close ends all live pages and lets no more come.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	j.closed = true
	for page := range j.pages {
		close(page.changes)
		delete(j.pages, page)
	}
}
