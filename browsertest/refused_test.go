package browsertest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// lifetime is that of tokens that a test waits to expire.
const lifetime = 2 * time.Second

func shortLived(c *replay.Config) { c.Lease = 500 * time.Millisecond }

func noStatus(w http.ResponseWriter, r *http.Request, _ int) bool {
	http.NotFound(w, r)
	return true
}

// waitForExpiry waits until the token is too old.
func (b *tab) waitForExpiry() {
	b.t.Helper()
	b.waitForToken()
	end := time.Now().Add(lifetime)
	b.shop.until("the token's end", func() bool { return time.Now().After(end) })
}

func TestExpiredTokenOfAPlainFormIsReplacedBeforeItIsSent(t *testing.T) {
	for name, page := range map[string]string{
		"drawn":           plainForm,
		"from the server": strings.Replace(plainForm, "<button", "{{field}}<button", 1),
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, token.Config{TTL: lifetime}, shortLived)
			s.pages["/"] = page
			b := s.open("/")
			b.waitForExpiry()
			if name == "from the server" { // nothing says how long it lives, so it is asked about after ten minutes
				b.eval(`const now = Date.now; Date.now = () => now() + 600_000`)
			}
			b.fill("[name=quantity]", "6")
			b.click("#buy")
			b.waitForOrder(1)
			s.wantOrders("mug x 6")
			if n := len(s.seen()); n != 1 {
				t.Errorf("%d submits, want 1", n)
			}
		})
	}
}

func TestExpiredTokenOfAFetchIsReplacedAndSentAgain(t *testing.T) {
	s := scriptShop(t, token.Config{TTL: lifetime}, shortLived)
	s.statuses = noStatus
	b := s.open("/")
	b.waitForExpiry()
	b.fill("[name=quantity]", "6")
	b.click("#buy")
	b.waitForOrder(1)
	b.wait(`window.answers.join() === "201"`)
	s.wantOrders("mug x 6")
	if all := s.seen(); len(all) != 2 || all[0].status != 403 || all[1].status != 201 {
		t.Errorf("want a refusal and an order; %s", s.report())
	}
}

func TestExpiredTokenThatMayHaveBeenUsedIsThePagesBusiness(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.front = func(w http.ResponseWriter, r *http.Request, n int) bool {
		if n <= 2 { // what the guard says after the retention
			replay.DefaultOnError(w, r, &replay.ExpiredError{})
		}
		return n <= 2
	}
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.wait(`window.answers.join() === "403"`)
	b.wait(`window.events.includes("stale(expired-token)")`)
	b.click("#buy")
	b.wait(`window.answers.join() === "403,403"`)
	s.wantOneToken(2)
	s.wantOrders()
	b.eval(`submitOnce.form("checkout").renew()`)
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
}

func TestTokenOfAnotherSessionIsReplacedOnceIfItWasNotSentBefore(t *testing.T) {
	s := scriptShop(t, token.Config{})
	b := s.open("/")
	b.waitForToken()
	b.eval(`document.cookie = "session=after-the-login; path=/"`)
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	if all := s.seen(); len(all) != 2 || all[0].status != 403 {
		t.Errorf("want a refusal and an order; %s", s.report())
	}
}

func TestTokenOfAnotherSessionThatWasSentBeforeIsThePagesBusiness(t *testing.T) {
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
	b.eval(`document.cookie = "session=after-the-login; path=/"`)
	b.click("#buy")
	b.wait(`window.events.includes("stale(invalid-token)")`)
	s.wantOrders("mug x 1")
	b.reload() // the visitor starts again
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(2)
}

func TestCartThatWasOrderedInAnotherTabStands(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.pages["/"] = strings.Replace(scriptForm, `data-submit-once="checkout"`, twoTabs, 1)
	s.scripts["/app.js"] = strings.Replace(appScript, `submitOnce.form("checkout")`, `submitOnce.form("checkout", { instance: "cart-42" })`, 1)
	first := s.open("/")
	second := first.another("/")
	first.waitForToken()
	second.waitForToken()
	first.click("#buy")
	first.waitForOrder(1)
	second.fill("[name=quantity]", "2")
	second.click("#buy")
	second.wait(`window.answers.join() === "422" && window.events.includes("stale(payload-mismatch)")`)
	s.wantOrders("mug x 1")
}

func TestSessionThatChangedUnderAPlainFormEndsInAFormThatWorks(t *testing.T) {
	s := plainShop(t)
	b := s.open("/")
	b.waitForToken()
	b.eval(`document.cookie = "session=after-the-login; path=/"`)
	b.fill("[name=quantity]", "4")
	b.click("#buy")
	b.wait(`document.title === "The submit token is not valid here"`)
	b.back()
	b.waitForToken()
	s.until("a new token", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.drawn == 2 })
	b.fill("[name=quantity]", "4")
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 4")
}
