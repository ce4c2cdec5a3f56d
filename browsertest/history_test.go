package browsertest

import (
	"net/http"
	"strings"
	"testing"
)

func TestRefreshOfTheResultPageShowsTheSameOrder(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = strings.Replace(plainForm, "<button", `<input type="hidden" name="answer" value="page"><button`, 1)
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	for n := 2; n <= 3; n++ {
		b.reload()
		b.waitForOrder(1)
		s.waitForAnswers(n)
	}
	s.wantOrders("mug x 1")
	s.wantOneToken(3)
	if last := s.seen()[2]; !last.replay {
		t.Error("the answer to the refresh is no replay")
	}
}

func TestRefreshOfTheFormKeepsItsToken(t *testing.T) {
	s := plainShop(t)
	b := s.open("/")
	first := b.waitForToken()
	for range 3 {
		b.reload()
		if again := b.waitForToken(); again != first {
			t.Fatal("another token after a refresh")
		}
	}
	if s.drawn != 1 {
		t.Errorf("%d tokens drawn, want 1", s.drawn)
	}
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
}

func TestRefreshWhileTheSubmitIsUnderWayKeepsItsToken(t *testing.T) {
	s := plainShop(t)
	open := s.holdHandlers()
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	s.waitForRuns(1)
	b.visit("/") // impatient
	b.waitForToken()
	b.click("#buy")
	s.waitForPosts(2)
	open()
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}

// leaveScript keeps a page out of the cache that Back is served from.
const leaveScript = `addEventListener("unload", () => {}); window.events = [];`

// eachBack runs a test with the page restored as it was, and loaded anew.
func eachBack(t *testing.T, test func(t *testing.T, s *shop)) {
	t.Run("from the cache", func(t *testing.T) { test(t, plainShop(t)) })
	t.Run("loaded anew", func(t *testing.T) {
		s := plainShop(t)
		s.head.Set("Cache-Control", "no-store")
		s.pages["/"] = plainForm + `<script src="/submitonce.js"></script><script src="/leave.js"></script>`
		s.scripts["/leave.js"] = leaveScript
		test(t, s)
	})
	t.Run("with the server's field", func(t *testing.T) {
		s := plainShop(t)
		s.pages["/"] = strings.Replace(plainForm, "<button", "{{field}}<button", 1) + `<script src="/submitonce.js"></script><script src="/leave.js"></script>`
		s.scripts["/leave.js"] = leaveScript
		test(t, s)
	})
}

func TestBackAndTheSameAgainShowsTheSameOrder(t *testing.T) {
	eachBack(t, func(t *testing.T, s *shop) {
		b := s.open("/")
		b.waitForToken()
		b.click("#buy")
		b.waitForOrder(1)
		b.back()
		b.waitForToken()
		b.click("#buy")
		s.waitForAnswers(2)
		b.waitForOrder(1)
		s.wantOrders("mug x 1")
		s.wantOneToken(2)
	})
}

func TestBackAndChangedIsAnotherOrder(t *testing.T) {
	eachBack(t, func(t *testing.T, s *shop) {
		b := s.open("/")
		b.waitForToken()
		b.click("#buy")
		b.waitForOrder(1)
		b.back()
		b.waitForToken()
		b.fill("[name=quantity]", "2")
		b.click("#buy")
		b.waitForOrder(2)
		b.back()
		b.waitForToken()
		b.fill("[name=quantity]", "3")
		b.click("#buy")
		b.waitForOrder(3)
		s.wantOrders("mug x 1", "mug x 2", "mug x 3")
	})
}

func TestPageFromTheCacheIsReallyRestored(t *testing.T) {
	s := plainShop(t)
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	b.back()
	if b.text("window.fromCache") != "true" {
		t.Fatal("the client keeps its page out of the cache that Back is served from")
	}
}

func TestComingBackByALinkIsAnotherOrder(t *testing.T) {
	s := plainShop(t)
	b := s.open("/")
	first := b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	b.click("#again")
	b.wait(`location.pathname === "/"`)
	if again := b.waitForToken(); again == first {
		t.Fatal("the page has the token that has been used")
	}
	b.click("#buy")
	b.waitForOrder(2)
	s.wantOrders("mug x 1", "mug x 1")
}

func TestWithoutAStatusNothingIsOrderedByGuess(t *testing.T) {
	s := plainShop(t)
	s.statuses = func(w http.ResponseWriter, r *http.Request, _ int) bool { http.NotFound(w, r); return true }
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	b.back()
	b.waitForToken()
	b.fill("[name=quantity]", "2")
	b.click("#buy")
	b.wait(`document.title === "Another content was sent before"`)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
	b.visit("/") // as the page says: load the form again
	b.waitForToken()
	b.fill("[name=quantity]", "2")
	b.click("#buy")
	b.waitForOrder(2)
	s.wantOrders("mug x 1", "mug x 2")
}

func TestLineCutAfterThePlainFormWasCarriedOut(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = strings.Replace(plainForm, `action="/"`, `action="/orders"`, 1)
	b := s.open("/")
	b.waitForToken()
	// Chromium itself sends a request once more whose connection broke, so that
	// more than one answer has to be lost.
	s.cut[1], s.cut[2], s.cut[3] = true, true, true
	b.click("#buy")
	b.wait(`location.protocol === "chrome-error:"`)
	sent := len(s.seen())
	s.mend()
	b.back()
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(sent + 1)
}

func TestWhatWasTypedIsStillThereAfterBack(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = `<form method="post" action="/orders" data-submit-once="checkout"><input name="quantity" value="1"><button id="buy">Order</button></form>
<script src="/submitonce.js"></script><script src="/leave.js"></script>`
	s.scripts["/leave.js"] = leaveScript
	b := s.open("/")
	b.waitForToken()
	b.fill("[name=quantity]", "8")
	b.click("#buy")
	b.waitForOrder(1)
	b.back()
	b.waitForToken()
	if got := b.text(`document.querySelector("[name=quantity]").value`); got != "8" {
		t.Errorf("the field holds %q after Back, want what was typed", got)
	}
}
