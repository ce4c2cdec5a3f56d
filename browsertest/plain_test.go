package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/submitonce/submitonce/token"
)

// plainForm is a form that the browser sends by itself.
const plainForm = `<title>Shop</title>
<form method="post" action="/" data-submit-once="checkout">
<input name="item" value="mug"><input name="quantity" value="1"><button id="buy">Order</button>
</form>`

func plainShop(t *testing.T) *shop {
	s := newShop(t, token.Config{})
	s.pages["/"] = plainForm
	return s
}

func TestDoubleClickOnAPlainFormOrdersOnce(t *testing.T) {
	s := plainShop(t)
	s.gate = make(chan struct{})
	b := s.open("/")
	b.waitForToken()
	button := b.find("#buy")
	b.clickAt(button)
	s.waitForRuns(1)
	b.clickAt(button) // the browser gives the first request up
	s.waitForPosts(2)
	close(s.gate)
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}

func TestEnterAndClickOrderOnce(t *testing.T) {
	s := plainShop(t)
	s.gate = make(chan struct{})
	b := s.open("/")
	b.waitForToken()
	button := b.find("#buy")
	b.fill("[name=quantity]", "2\r")
	s.waitForRuns(1)
	b.press("\r")
	s.waitForPosts(2)
	b.clickAt(button)
	s.waitForPosts(3)
	close(s.gate)
	b.waitForOrder(1)
	s.wantOrders("mug x 2")
	s.wantOneToken(3)
}

func TestSubmitBeforeTheTokenIsThereWaitsForIt(t *testing.T) {
	s := plainShop(t)
	arrived := make(chan struct{})
	s.tokens = func(http.ResponseWriter, *http.Request, int) bool { <-arrived; return false }
	b := s.open("/")
	b.click("#buy")
	b.click("#buy")
	b.press("\r")
	b.wait(`document.querySelector("form").ariaBusy === "true"`)
	if b.text(`document.querySelector("#buy").disabled`) != "false" {
		t.Error("the button is disabled")
	}
	if n := len(s.seen()); n != 0 {
		t.Fatalf("%d submits left without a token", n)
	}
	close(arrived)
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(1)
}

func TestTokenEndpointThatFailsIsAskedAgain(t *testing.T) {
	s := plainShop(t)
	s.tokens = func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if n <= 2 {
			http.Error(w, "restarting", http.StatusServiceUnavailable)
		}
		return n <= 2
	}
	b := s.open("/")
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(1)
}

func TestSubmitWithoutATokenIsNotSentAndTheNextClickTriesAgain(t *testing.T) {
	s := plainShop(t)
	broken := true
	s.tokens = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if broken {
			http.Error(w, "misconfigured", http.StatusNotFound)
		}
		return broken
	}
	b := s.open("/")
	b.wait(`window.events.includes("error")`)
	b.fill("[name=quantity]", "4")
	b.eval(`window.events.length = 0`)
	b.click("#buy")
	b.wait(`window.events.includes("error") && !document.querySelector("form").ariaBusy`)
	if len(s.seen()) != 0 {
		t.Fatalf("a submit has left without a token; %s", s.report())
	}
	s.mu.Lock()
	broken = false
	s.mu.Unlock()
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 4")
}

func TestRefusedFormIsCorrectedUnderTheSameToken(t *testing.T) {
	s := plainShop(t)
	b := s.open("/")
	first := b.waitForToken()
	b.fill("[name=quantity]", "0")
	b.click("#buy")
	b.wait(`document.querySelector("#problem")`)
	if again := b.waitForToken(); again != first {
		t.Errorf("the page that came back has the token %s, want %s", token.Redact(again), token.Redact(first))
	}
	b.fill("[name=quantity]", "3")
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 3")
	s.wantOneToken(2)
}

func TestRefusedFormWithTheServersFieldIsCorrected(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = strings.Replace(plainForm, "<button", "{{field}}<button", 1)
	b := s.open("/")
	b.fill("[name=quantity]", "0")
	b.click("#buy")
	b.wait(`document.querySelector("#problem")`)
	b.fill("[name=quantity]", "3")
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 3")
	if s.drawn != 0 {
		t.Errorf("%d tokens drawn, though the server has put them into the page", s.drawn)
	}
}

func TestFormWorksWithoutScript(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = strings.Replace(plainForm, "<button", "{{field}}<button", 1)
	s.gate = make(chan struct{})
	b := s.newTab()
	b.withoutScript()
	b.visit("/")
	button := b.find("#buy")
	b.clickAt(button)
	s.waitForRuns(1)
	b.clickAt(button)
	s.waitForPosts(2)
	close(s.gate)
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}

func TestValidatorThatRunsLaterLeavesTheFormAlive(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = plainForm + `<script src="/submitonce.js"></script><script src="/validate.js"></script>`
	s.scripts["/validate.js"] = `
window.refused = 0;
window.addEventListener("submit", (e) => { if (!window.valid) { window.refused++; e.preventDefault(); } });`
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.wait(`window.refused === 1`)
	if b.text(`document.querySelector("form").ariaBusy`) != "null" || b.text(`document.querySelector("#buy").disabled`) != "false" {
		t.Error("the form is locked after a submit that has been prevented")
	}
	b.eval(`window.valid = true`)
	b.fill("[name=quantity]", "5")
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 5")
	if s.asked != 0 {
		t.Errorf("asked %d times about a token that has never been sent", s.asked)
	}
}

func TestListenersRunOnceForAHeldSubmit(t *testing.T) {
	s := plainShop(t)
	arrived := make(chan struct{})
	s.tokens = func(http.ResponseWriter, *http.Request, int) bool { <-arrived; return false }
	b := s.open("/")
	b.eval(`addEventListener("submit", () => { sessionStorage.ran = Number(sessionStorage.ran || 0) + 1; })`)
	b.click("#buy")
	b.wait(`document.querySelector("form").ariaBusy === "true"`)
	close(arrived)
	b.waitForOrder(1)
	if got := b.text(`sessionStorage.ran`); got != "1" {
		t.Errorf("a listener ran %s times, want once", got)
	}
}

func TestSubmitButtonsValueIsSentWithAHeldSubmit(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = strings.Replace(plainForm, `<button id="buy">`, `<button>First</button><button id="buy" name="quantity" value="7">`, 1)
	s.pages["/"] = strings.Replace(s.pages["/"], `<input name="quantity" value="1">`, "", 1)
	arrived := make(chan struct{})
	s.tokens = func(http.ResponseWriter, *http.Request, int) bool { <-arrived; return false }
	b := s.open("/")
	b.click("#buy")
	b.wait(`document.querySelector("form").ariaBusy === "true"`)
	close(arrived)
	b.waitForOrder(1)
	s.wantOrders("mug x 7")
}

func TestTwoFormsOfOneNameHaveTheirOwnTokens(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = plainForm + strings.NewReplacer(`id="buy"`, `id="buy2"`, "mug", "cup").Replace(plainForm)
	b := s.open("/")
	b.wait(`Object.keys(sessionStorage).length === 2`)
	b.click("#buy2")
	b.waitForOrder(1)
	b.visit("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(2)
	s.wantOrders("cup x 1", "mug x 1")
}

func TestFormThatIsReplacedKeepsItsToken(t *testing.T) {
	s := plainShop(t)
	b := s.open("/")
	first := b.waitForToken()
	b.eval(`document.querySelector("form").replaceWith(document.querySelector("form").cloneNode(true))`)
	b.eval(`document.querySelector("form").innerHTML = '<input name="item" value="cup"><input name="quantity" value="1"><button id="buy">Order</button>'`)
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("cup x 1")
	if s.drawn != 1 || s.seen()[0].token != first {
		t.Errorf("the form that took its place has another token; %s", s.report())
	}
}

func TestFormThatComesLaterGetsAToken(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = `<title>Shop</title>`
	b := s.open("/")
	b.eval(fmt.Sprintf(`document.body.insertAdjacentHTML("beforeend", %q)`, plainForm))
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
}

func TestEmptyFieldInTheFormIsFilled(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = strings.Replace(plainForm, "<button", `<input type="hidden" name="submit_token"><button`, 1)
	b := s.open("/")
	b.wait(`document.querySelector("[name=submit_token]").value.length === 48`)
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
}

func TestSubmitOfAPageThatIsStillLoading(t *testing.T) {
	s := plainShop(t)
	rest := make(chan struct{})
	s.others["/slow"] = func(w http.ResponseWriter, r *http.Request) {
		s.sendForm(w, r, 200, plainForm)
		_ = http.NewResponseController(w).Flush()
		<-rest
	}
	b := s.newTab()
	b.start("/slow")
	b.wait(`document.querySelector("#buy")`)
	if b.text(`document.readyState`) != "loading" {
		t.Fatal("the page has been loaded")
	}
	b.click("#buy")
	b.waitForOrder(1)
	close(rest)
	s.wantOrders("mug x 1")
}

func TestStoppedSubmitIsSentAgainUnderItsToken(t *testing.T) {
	s := plainShop(t)
	s.gate = make(chan struct{})
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	s.waitForRuns(1)
	call(b, page.StopLoading, cdp.Empty{})
	b.wait(`!document.querySelector("form").ariaBusy`)
	b.click("#buy")
	s.waitForPosts(2)
	close(s.gate)
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}

func TestChangedPlainFormWaitsForTheFirstOutcome(t *testing.T) {
	s := plainShop(t)
	s.gate = make(chan struct{})
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	s.waitForRuns(1)
	call(b, page.StopLoading, cdp.Empty{})
	b.fill("[name=quantity]", "2")
	b.click("#buy")
	b.wait(`document.querySelector("form").ariaBusy === "true"`)
	s.until("the server is asked more than once", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.asked > 1 })
	if n := len(s.seen()); n != 1 {
		t.Fatalf("%d submits before the first has its outcome", n)
	}
	close(s.gate)
	b.waitForOrder(2)
	s.wantOrders("mug x 1", "mug x 2")
}
