package browsertest

import (
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
	open := s.holdHandlers()
	b := s.open("/")
	b.waitForToken()
	button := b.find("#buy")
	b.clickAt(button)
	s.waitForRuns(1)
	b.clickAt(button) // the browser gives the first request up
	s.waitForPosts(2)
	open()
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}

func TestEnterAndClickOrderOnce(t *testing.T) {
	s := plainShop(t)
	open := s.holdHandlers()
	b := s.open("/")
	b.waitForToken()
	button := b.find("#buy")
	b.fill("[name=quantity]", "2\r")
	s.waitForRuns(1)
	b.press("\r")
	s.waitForPosts(2)
	b.clickAt(button)
	s.waitForPosts(3)
	open()
	b.waitForOrder(1)
	s.wantOrders("mug x 2")
	s.wantOneToken(3)
}

func TestSubmitBeforeTheTokenIsThereWaitsForIt(t *testing.T) {
	s := plainShop(t)
	arrive := s.holdTokens()
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
	arrive()
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
	open := s.holdHandlers()
	b := s.newTab()
	b.withoutScript()
	b.visit("/")
	button := b.find("#buy")
	b.clickAt(button)
	s.waitForRuns(1)
	b.clickAt(button)
	s.waitForPosts(2)
	open()
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}

func TestSubmitOfAPageThatIsStillLoading(t *testing.T) {
	s := plainShop(t)
	rest, finish := s.gateway()
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
	finish()
	s.wantOrders("mug x 1")
}

func TestStoppedSubmitIsSentAgainUnderItsToken(t *testing.T) {
	s := plainShop(t)
	open := s.holdHandlers()
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	s.waitForRuns(1)
	call(b, page.StopLoading, cdp.Empty{})
	b.wait(`!document.querySelector("form").ariaBusy`)
	b.click("#buy")
	s.waitForPosts(2)
	open()
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}

func TestChangedPlainFormWaitsForTheFirstOutcome(t *testing.T) {
	s := plainShop(t)
	open := s.holdHandlers()
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
	open()
	b.waitForOrder(2)
	s.wantOrders("mug x 1", "mug x 2")
}
