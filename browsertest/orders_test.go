package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

func (s *shop) submit(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the browser has given this one up
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p := &post{token: r.Header.Get(token.HeaderName)}
	copied := r.Clone(r.Context())
	copied.Body = io.NopCloser(bytes.NewReader(body))
	fields := readFields(copied)
	if p.token == "" {
		p.token = fields[token.FieldName]
	}
	p.content = contentOf(fields)
	s.mu.Lock()
	s.posts = append(s.posts, p)
	n := len(s.posts)
	s.mu.Unlock()
	if s.front != nil && s.front(w, r, n) {
		return
	}

	held := httptest.NewRecorder()
	s.guard.Serve(held, r, http.HandlerFunc(s.order))
	s.mu.Lock()
	p.status = held.Code
	p.replay = held.Header().Get(replay.DefaultReplayedHeader) != ""
	lost := s.cut[n]
	s.mu.Unlock()
	if lost {
		panic(http.ErrAbortHandler) // the line goes dead
	}
	for name, values := range held.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(held.Code)
	_, _ = w.Write(held.Body.Bytes())
}

func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.runs++
	s.mu.Unlock()
	if s.gate != nil {
		<-s.gate
	}
	fields := readFields(r)
	if fields["quantity"] == "0" {
		s.refuse(w, r)
		return
	}
	s.mu.Lock()
	s.orders = append(s.orders, contentOf(fields))
	number := fmt.Sprint(len(s.orders))
	s.mu.Unlock()
	switch {
	case !strings.Contains(r.Header.Get("Accept"), "text/html"):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]string{"order_no": number})
	case fields["answer"] == "page":
		s.sendPage(w, 200, orderPage(number))
	default:
		http.Redirect(w, r, "/orders/"+number, http.StatusSeeOther)
	}
}

func (s *shop) refuse(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.invalid != nil:
		s.invalid(w, r)
	case strings.Contains(r.Header.Get("Accept"), "text/html"):
		s.sendForm(w, r, http.StatusUnprocessableEntity, "<p id=problem>At least one.</p>"+s.pages[r.URL.Path])
	default:
		http.Error(w, `{"quantity":"at least one"}`, http.StatusUnprocessableEntity)
	}
}

func readFields(r *http.Request) map[string]string {
	fields := map[string]string{}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		_ = json.NewDecoder(r.Body).Decode(&fields) // a test that sends nonsense finds nothing
		return fields
	}
	_ = r.ParseMultipartForm(1 << 20) // nor here
	for name := range r.PostForm {
		fields[name] = r.PostForm.Get(name)
	}
	return fields
}

func contentOf(fields map[string]string) string {
	return fields["item"] + " x " + fields["quantity"]
}
