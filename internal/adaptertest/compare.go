package adaptertest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/submitonce/submitonce/replay"
)

// same fails unless b is a as a client sees it, apart from the moment.
func (s *site) same(what string, a, b answer) {
	s.Helper()
	if a.status != b.status || !bytes.Equal(a.body, b.body) {
		s.Errorf("%s: %d %.200q\nwant %d %.200q", what, b.status, b.body, a.status, a.body)
	}
	ha, hb := lasting(a.header), lasting(b.header)
	if got, want := text(hb), text(ha); got != want {
		s.Errorf("%s: header %s\nwant %s", what, got, want)
	}
	if got, want := text(b.trailer), text(a.trailer); got != want {
		s.Errorf("%s: trailer %s, want %s", what, got, want)
	}
}

// replays fails unless again is the replay of first.
func (s *site) replays(first, again answer) {
	s.Helper()
	s.same("replay", first, again)
	if got := first.header[replay.DefaultReplayedHeader]; got != nil {
		s.Errorf("first answer: %s = %q, want none", replay.DefaultReplayedHeader, got)
	}
	if got := again.header[replay.DefaultReplayedHeader]; len(got) != 1 || got[0] != "true" {
		s.Errorf("second answer (%d): %s = %q, want one \"true\"", again.status, replay.DefaultReplayedHeader, got)
	}
	if first.length >= 0 && again.length != first.length {
		s.Errorf("replay: Content-Length %d, want %d", again.length, first.length)
	}
}

// problem fails unless a is the problem with this status and code.
func (s *site) problem(a answer, status int, code string) {
	s.Helper()
	var p replay.Problem
	if err := json.Unmarshal(a.body, &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
		s.Errorf("answer is %d %s %.200q, want a problem %d %s", a.status, a.header.Get("Content-Type"), a.body, status, code)
		return
	}
	if a.status != status || p.Status != status || p.Type != replay.ProblemBase+code {
		s.Errorf("problem is %d %s (%d in the body), want %d %s", a.status, p.Type, p.Status, status, code)
	}
	if retry := a.header.Get("Retry-After"); p.Retryable != (retry != "") {
		s.Errorf("problem %s: retryable = %v with Retry-After %q", code, p.Retryable, retry)
	}
	if strings.Contains(strings.ToLower(string(a.body)), "duplicate") {
		s.Errorf("problem %s speaks of a duplicate: %s", code, a.body)
	}
}

// ran fails unless the handler has run so many times.
func (s *site) ran(want int64) {
	s.Helper()
	if got := s.runs.Load(); got != want {
		s.Errorf("handler ran %d times, want %d", got, want)
	}
}

// lasting leaves out what belongs to one moment or one connection.
func lasting(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range []string{"Date", "Content-Length", replay.DefaultReplayedHeader} {
		h.Del(name)
	}
	return h
}

func text(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b) // in order of names
	return strings.ReplaceAll(b.String(), "\r\n", "; ")
}
