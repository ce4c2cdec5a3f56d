package browsertest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/submitonce/submitonce/token"
)

func TestLineCutAfterTheServerHasCommittedIsTriedAgain(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.cut[1], s.cut[2] = true, true
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(3)
	if last := s.seen()[2]; !last.replay {
		t.Error("the retry was answered by no replay")
	}
}

func TestSecondClickAfterALostAnswerHasTheSameToken(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.scripts["/app.js"] = `submitOnce.configure({ tries: 1 });` + appScript
	for n := range 10 {
		s.cut[n] = true
	}
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.wait(`window.answers.join() === "TypeError"`)
	s.mend()
	b.reload() // the page forgets, the tab does not
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(len(s.seen()))
}

func TestChangedContentAfterALostAnswerIsAskedAbout(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.scripts["/app.js"] = `submitOnce.configure({ tries: 1 });` + appScript
	for n := range 10 {
		s.cut[n] = true
	}
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.wait(`window.answers.join() === "TypeError"`)
	s.mend()
	b.fill("[name=quantity]", "2")
	b.click("#buy")
	b.waitForOrder(2)
	s.wantOrders("mug x 1", "mug x 2")
	if s.asked != 1 {
		t.Errorf("asked %d times, want once", s.asked)
	}
}

// answering answers the first n submits with a status of its own.
func answering(n, status int, header ...string) func(http.ResponseWriter, *http.Request, int) bool {
	return func(w http.ResponseWriter, _ *http.Request, i int) bool {
		if i > n {
			return false
		}
		for j := 0; j < len(header); j += 2 {
			w.Header().Set(header[j], header[j+1])
		}
		w.WriteHeader(status)
		if status != 204 {
			_, _ = w.Write([]byte(`{"retryable":true}`))
		}
		return true
	}
}

func TestWhatIsWorthItIsTriedAgain(t *testing.T) {
	problem := []string{"Content-Type", "application/problem+json"}
	for name, front := range map[string]func(http.ResponseWriter, *http.Request, int) bool{
		"502":                answering(2, 502),
		"503":                answering(2, 503),
		"504":                answering(2, 504),
		"still in progress":  answering(2, 409, problem...),
		"retryable by word":  answering(1, 500, problem...),
		"503 with a problem": answering(1, 503, problem...),
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptShop(t, token.Config{})
			s.front = front
			b := s.open("/")
			b.waitForToken()
			b.click("#buy")
			b.waitForOrder(1)
			s.wantOrders("mug x 1")
			s.wantOneToken(len(s.seen()))
			if !strings.Contains(b.events(), "retry") {
				t.Errorf("events %q", b.events())
			}
		})
	}
}

func TestWhatIsNotWorthItIsTriedOnce(t *testing.T) {
	for _, status := range []int{400, 401, 404, 409, 429, 500, 501} {
		s := scriptShop(t, token.Config{})
		s.front = answering(99, status)
		b := s.open("/")
		b.waitForToken()
		b.click("#buy")
		b.wait(`window.answers.length === 1 && !document.querySelector("form").ariaBusy`)
		s.wantOneToken(1)
	}
}

func TestTryingAgainComesToAnEnd(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.scripts["/app.js"] = `submitOnce.configure({ tries: 3 });` + appScript
	s.front = answering(3, 503)
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.wait(`window.answers.join() === "503"`)
	s.wantOneToken(3)
	if got := b.events(); got != "ready retry retry error" {
		t.Errorf("events %q", got)
	}
	b.click("#buy") // and by hand, still with the same token
	b.waitForOrder(1)
	s.wantOneToken(4)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for name, value := range map[string]func() string{
		"seconds": func() string { return "2" },
		"a date":  func() string { return time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptShop(t, token.Config{})
			var first, second time.Time
			s.front = func(w http.ResponseWriter, r *http.Request, n int) bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				if n > 1 {
					second = time.Now()
					return false
				}
				first = time.Now()
				return answering(1, 503, "Retry-After", value())(w, r, n)
			}
			b := s.open("/")
			b.waitForToken()
			b.click("#buy")
			b.waitForOrder(1)
			if waited := second.Sub(first); waited < 1900*time.Millisecond {
				t.Errorf("tried again after %v, want 2 s or more", waited)
			}
		})
	}
	t.Run("longer than the client's patience", func(t *testing.T) {
		s := scriptShop(t, token.Config{})
		s.front = answering(1, 503, "Retry-After", "3600")
		b := s.open("/")
		b.waitForToken()
		b.click("#buy")
		b.wait(`window.answers.join() === "503"`)
		s.wantOneToken(1)
	})
}

func TestAbortedFetchStopsAndKeepsItsToken(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.front = answering(1, 503, "Retry-After", "30")
	b := s.open("/")
	b.waitForToken()
	b.eval(`window.stop = new AbortController(); send({ signal: window.stop.signal })`)
	b.wait(`window.events.includes("retry")`)
	b.eval(`window.stop.abort()`)
	b.wait(`window.answers.join() === "AbortError" && !document.querySelector("form").ariaBusy`)
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}

func TestAbortThenSendAtOnceIsNotAborted(t *testing.T) {
	s := scriptShop(t, token.Config{})
	open := s.holdHandlers()
	b := s.open("/")
	b.waitForToken()
	b.eval(`window.stop = new AbortController(); send({ signal: window.stop.signal })`)
	s.waitForRuns(1)
	b.eval(`window.stop.abort(); send()`) // what query libraries do at a second click
	s.waitForPosts(2)
	open()
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}
