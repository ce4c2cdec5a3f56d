package browsertest

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// libraryShop serves a page with htmx or Turbo: the real library, if its file is
// named by the environment variable, or else a stand-in that dispatches the same
// events in the same order.
func libraryShop(t *testing.T, variable, standIn, page string) *shop {
	t.Helper()
	s := newShop(t, token.Config{})
	s.policy = strings.Replace(s.policy, "default-src", "style-src 'unsafe-inline'; default-src", 1)
	s.scripts["/library.js"] = standIn
	if path := os.Getenv(variable); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s.scripts["/library.js"] = string(text)
	}
	s.pages["/"] = `<head><script src="/submitonce.js"></script><script src="/library.js"></script></head><body>` + page + `</body>`
	return s
}

func htmxShop(t *testing.T) *shop {
	t.Helper()
	return libraryShop(t, "HTMX", htmxStandIn, `<title>Shop</title>
<form data-submit-once="checkout" hx-post="/orders" hx-target="#result"><input name="item" value="mug"><input name="quantity" value="1"><button id="buy">Order</button></form>
<div id="result"></div>`)
}

// waitForResult waits until htmx has put an answer into the page.
func (b *tab) waitForResult(number string) {
	b.t.Helper()
	b.wait(`document.querySelector("#result").textContent.includes('"order_no":"` + number + `"')`)
}

func TestHTMXSendsTheToken(t *testing.T) {
	s := htmxShop(t)
	open := s.holdHandlers()
	arrive := s.holdTokens()
	b := s.open("/")
	b.click("#buy")
	b.wait(`document.querySelector("form").ariaBusy === "true"`)
	arrive()
	s.waitForRuns(1)
	b.click("#buy")
	open()
	b.waitForResult("1")
	b.wait(`window.events.filter((e) => e.startsWith("success")).length === 2`)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)

	b.fill("[name=quantity]", "2")
	b.click("#buy")
	b.waitForResult("2")
	s.wantOrders("mug x 1", "mug x 2")
}

func TestHTMXCorrectsUnderTheSameToken(t *testing.T) {
	s := htmxShop(t)
	b := s.open("/")
	b.waitForToken()
	b.fill("[name=quantity]", "0")
	b.click("#buy")
	s.waitForAnswers(1)
	b.wait(`!document.querySelector("form").ariaBusy`)
	b.fill("[name=quantity]", "3")
	b.click("#buy")
	b.waitForResult("1")
	s.wantOrders("mug x 3")
	s.wantOneToken(2)
}

func TestHTMXFormThatIsSwappedGoesOn(t *testing.T) {
	s := htmxShop(t)
	form := s.pages["/"][strings.Index(s.pages["/"], "<form"):strings.Index(s.pages["/"], "<div")]
	s.pages["/"] = strings.Replace(s.pages["/"], `hx-target="#result"`, `hx-swap="outerHTML"`, 1)
	s.invalid = func(w http.ResponseWriter, r *http.Request) {
		replay.Release(r.Context())
		s.sendForm(w, r, 200, `<!-- no <script -->`+form)
	}
	b := s.open("/")
	b.waitForToken()
	b.fill("[name=quantity]", "0")
	b.click("#buy")
	b.wait(`document.querySelector("form").getAttribute("hx-target") === "#result"`)
	b.fill("[name=quantity]", "5")
	b.click("#buy")
	b.waitForResult("1")
	s.wantOrders("mug x 5")
}

func TestHTMXButtonsInTheFormSendItsToken(t *testing.T) {
	s := htmxShop(t)
	s.pages["/"] = strings.Replace(s.pages["/"], `<button id="buy">`, `<button type="button" id="buy" hx-post="/orders" hx-target="#result">`, 1)
	arrive := s.holdTokens()
	b := s.open("/")
	b.click("#buy")
	arrive()
	b.waitForResult("1")
	b.click("#buy")
	b.wait(`window.events.filter((e) => e.startsWith("success")).length === 2`)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}

func TestHTMXReplacesAnExpiredTokenAndSendsAgain(t *testing.T) {
	s := htmxShop(t)
	s.front = func(w http.ResponseWriter, r *http.Request, n int) bool {
		if n == 1 {
			replay.DefaultOnError(w, r, &replay.ExpiredError{Unclaimed: true})
		}
		return n == 1
	}
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForResult("1")
	s.wantOrders("mug x 1")
	if all := s.seen(); len(all) != 2 || all[0].token == all[1].token {
		t.Errorf("want two submits under two tokens; %s", s.report())
	}
}

func turboShop(t *testing.T) *shop {
	t.Helper()
	return libraryShop(t, "TURBO", turboStandIn, `<title>Shop</title>
<form method="post" action="/orders" data-submit-once="checkout"><input name="item" value="mug"><input name="quantity" value="1"><button id="buy">Order</button></form>`)
}

func TestTurboSendsTheToken(t *testing.T) {
	s := turboShop(t)
	open := s.holdHandlers()
	arrive := s.holdTokens()
	b := s.open("/")
	b.click("#buy")
	b.wait(`document.querySelector("form").ariaBusy === "true"`)
	arrive()
	s.waitForRuns(1)
	b.eval(`window.stayed = true`)
	b.eval(`document.querySelector("form").requestSubmit()`) // Turbo disables the button
	open()
	b.waitForOrder(1)
	if b.text(`window.stayed`) != "true" {
		t.Error("the page has been loaded anew; this was no visit of Turbo's")
	}
	s.wantOrders("mug x 1")
	for _, p := range s.seen() {
		if p.token != s.seen()[0].token {
			t.Errorf("want one token; %s", s.report())
		}
	}

	b.click("#again") // a visit by a link
	b.wait(`document.querySelector("#buy")`)
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(2)
	s.wantOrders("mug x 1", "mug x 1")
}

func TestTurboCorrectsUnderTheSameToken(t *testing.T) {
	s := turboShop(t)
	s.pages["/orders"] = s.pages["/"]
	b := s.open("/")
	b.waitForToken()
	b.fill("[name=quantity]", "0")
	b.click("#buy")
	b.wait(`document.querySelector("#problem")`)
	b.fill("[name=quantity]", "3")
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 3")
	s.wantOneToken(2)
}

func TestTurboBackAndTheSameAgainShowsTheSameOrder(t *testing.T) {
	s := turboShop(t)
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	b.eval(`history.back()`)
	b.wait(`document.querySelector("#buy")`)
	b.click("#buy")
	b.waitForOrder(1)
	s.waitForAnswers(2)
	s.wantOrders("mug x 1")
	b.eval(`history.back()`)
	b.wait(`document.querySelector("#buy")`)
	b.fill("[name=quantity]", "2")
	b.click("#buy")
	b.waitForOrder(2)
	s.wantOrders("mug x 1", "mug x 2")
}
