package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/submitonce/submitonce/token"
)

func TestPlainHTTPOfAnotherNameIsEnough(t *testing.T) {
	s := plainShop(t)
	s.url = strings.Replace(s.url, "127.0.0.1", "shop.test", 1)
	open := s.holdHandlers()
	b := s.open("/")
	if b.text(`isSecureContext`) != "false" || b.text(`typeof crypto.randomUUID`) != "undefined" {
		t.Fatal("the page is in a secure context")
	}
	first := b.waitForToken()
	if copied := b.duplicate().waitForToken(); copied == first {
		t.Error("a duplicated tab holds the same token")
	}
	b.reload()
	if b.waitForToken() != first {
		t.Error("another token after a refresh")
	}
	button := b.find("#buy")
	b.clickAt(button)
	s.waitForRuns(1)
	b.clickAt(button)
	s.waitForPosts(2)
	open()
	b.waitForOrder(1)
	b.back()
	b.waitForToken()
	b.fill("[name=quantity]", "2")
	b.click("#buy")
	b.waitForOrder(2)
	s.wantOrders("mug x 1", "mug x 2")
}

func TestPageWithoutStorageAndChannels(t *testing.T) {
	s := plainShop(t)
	b := s.newTab()
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		Object.defineProperty(window, "sessionStorage", { get() { throw new DOMException("no", "SecurityError"); } });
		window.BroadcastChannel = class { constructor() { throw new DOMException("no", "SecurityError"); } };`})
	open := s.holdHandlers()
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

func TestStrictPolicyIsEnough(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.policy = "default-src 'none'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	if got := b.events(); got != "ready success" {
		t.Errorf("events %q", got)
	}
}

func TestModuleIsTheSameClient(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.pages["/"] = strings.Replace(scriptForm, `<script src="/submitonce.js"></script><script src="/app.js"></script>`, `<script type="module" src="/app.js"></script>`, 1)
	s.scripts["/app.js"] = `import { submitOnce } from "/submitonce.mjs"; submitOnce.configure({ endpoint: "/submit-token?by=module" });` + appScript
	queries := make(chan string, 9)
	s.tokens = func(_ http.ResponseWriter, r *http.Request, _ int) bool { queries <- r.URL.RawQuery; return false }
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	if got := <-queries; got != "by=module&form=checkout" {
		t.Errorf("the endpoint was asked for %q", got)
	}
	if b.text(`typeof globalThis.submitOnce`) != "undefined" {
		t.Error("the module has made a global")
	}
}

func TestScriptThatRunsTwiceIsOneClient(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.pages["/"] = strings.Replace(scriptForm, `<script src="/app.js"></script>`, `<script src="/submitonce.js"></script><script type="module" src="/app.js"></script>`, 1)
	s.scripts["/app.js"] = `import submitOnce from "/submitonce.mjs"; window.same = submitOnce === window.submitOnce;` + appScript
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	if b.text(`window.same`) != "true" || b.events() != "ready success" || s.drawn != 1 {
		t.Errorf("same client %s, events %q, %d tokens drawn", b.text(`window.same`), b.events(), s.drawn)
	}
}

func TestEndpointIsTakenFromTheElements(t *testing.T) {
	for name, change := range map[string][2]string{
		"script element": {`src="/submitonce.js"`, `src="/submitonce.js" data-endpoint="/submit-token?by=element"`},
		"form element":   {`data-submit-once="checkout"`, `data-submit-once="checkout" data-submit-once-endpoint="/submit-token?by=element"`},
	} {
		s := plainShop(t)
		s.pages["/"] = strings.Replace(plainForm+`<script src="/submitonce.js"></script>`, change[0], change[1], 1)
		queries := make(chan string, 9)
		s.tokens = func(_ http.ResponseWriter, r *http.Request, _ int) bool { queries <- r.URL.RawQuery; return false }
		b := s.open("/")
		b.waitForToken()
		if got := <-queries; got != "by=element&form=checkout" {
			t.Errorf("%s: the endpoint was asked for %q", name, got)
		}
		b.click("#buy")
		b.waitForOrder(1)
		b.back()
		b.waitForToken()
		b.fill("[name=quantity]", "2")
		b.click("#buy")
		b.waitForOrder(2)
	}
}

func TestFieldNamesDoNotHideWhatTheClientUses(t *testing.T) {
	s := plainShop(t)
	fields := ""
	for _, name := range []string{"method", "action", "submit", "requestSubmit", "elements", "form", "name", "id"} {
		fields += fmt.Sprintf(`<input type="hidden" name=%q value="x">`, name)
	}
	s.pages["/"] = strings.Replace(plainForm, "<button", fields+"<button", 1)
	arrive := s.holdTokens()
	b := s.open("/")
	b.click("#buy")
	b.wait(`document.querySelector("form").ariaBusy === "true"`)
	arrive()
	b.waitForOrder(1)
	s.wantOrders("mug x 1")
}
