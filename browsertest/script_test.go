package browsertest

import (
	"strings"
	"testing"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// scriptForm is a form that the page's own script sends.
const scriptForm = `<title>Shop</title>
<form data-submit-once="checkout"><input name="item" value="mug"><input name="quantity" value="1"><button id="buy">Order</button></form>
<p>Your order: <b id="order"></b></p>
<script src="/submitonce.js"></script><script src="/app.js"></script>`

// appScript sends the form as JSON at each click, and shows what comes.
const appScript = `
window.answers = [];
window.send = async (options = {}) => {
  const content = Object.fromEntries(new FormData(document.querySelector("form")));
  delete content.submit_token;
  try {
    const response = await submitOnce.form("checkout").fetch("/orders", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(content),
      ...options,
    });
    const body = await response.json().catch(() => ({}));
    window.answers.push(response.status);
    if (body.order_no) document.querySelector("#order").textContent = body.order_no;
  } catch (error) {
    window.answers.push(error.name);
  }
};
document.querySelector("form").addEventListener("submit", (e) => { e.preventDefault(); window.send(); });
`

func scriptShop(t *testing.T, config token.Config, changes ...func(*replay.Config)) *shop {
	s := newShop(t, config, changes...)
	s.pages["/"] = scriptForm
	s.scripts["/app.js"] = appScript
	return s
}

func TestDoubleClickOnAFetchFormOrdersOnce(t *testing.T) {
	t.Run("slow", func(t *testing.T) {
		s := scriptShop(t, token.Config{})
		open := s.holdHandlers()
		b := s.open("/")
		b.waitForToken()
		b.click("#buy")
		s.waitForRuns(1)
		b.click("#buy")
		b.wait(`document.querySelector("form").ariaBusy === "true"`)
		open()
		b.wait(`window.answers.join() === "201,201" && !document.querySelector("form").ariaBusy`)
		b.waitForOrder(1)
		s.wantOrders("mug x 1")
		s.wantOneToken(1)
	})
	t.Run("the answer is faster than the second click", func(t *testing.T) {
		s := scriptShop(t, token.Config{})
		b := s.open("/")
		b.waitForToken()
		b.click("#buy")
		b.waitForOrder(1)
		b.click("#buy")
		b.wait(`window.answers.join() === "201,201"`)
		s.wantOrders("mug x 1")
		s.wantOneToken(2)
		if got := b.events(); got != "ready success success(replayed)" {
			t.Errorf("events %q", got)
		}
	})
}

func TestNextSubmitAfterAnAnswerGetsANewToken(t *testing.T) {
	s := scriptShop(t, token.Config{})
	b := s.open("/")
	b.waitForToken()
	b.click("#buy")
	b.waitForOrder(1)
	b.fill("[name=quantity]", "2")
	b.click("#buy")
	b.waitForOrder(2)
	b.fill("[name=quantity]", "2") // typed once more: meant once more
	b.click("#buy")
	b.waitForOrder(3)
	b.eval(`document.querySelector("form").reset()`)
	b.click("#buy")
	b.waitForOrder(4)
	s.wantOrders("mug x 1", "mug x 2", "mug x 2", "mug x 1")
}

func TestChangedContentWaitsForTheFirstOutcome(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		s := scriptShop(t, token.Config{})
		open := s.holdHandlers()
		b := s.open("/")
		b.waitForToken()
		b.click("#buy")
		s.waitForRuns(1)
		b.fill("[name=quantity]", "2")
		if dropped {
			b.eval(`document.addEventListener("submitonce:changed", (e) => e.preventDefault())`)
		}
		b.click("#buy")
		b.eval(`new Promise((resolve) => setTimeout(resolve))`)
		if n := len(s.seen()); n != 1 {
			t.Fatalf("%d submits before the first is answered", n)
		}
		open()
		if dropped {
			b.wait(`window.answers.slice().sort().join() === "201,AbortError"`)
			s.wantOrders("mug x 1")
			continue
		}
		b.waitForOrder(2)
		s.wantOrders("mug x 1", "mug x 2")
		if !strings.Contains(b.events(), "changed") {
			t.Errorf("events %q, want the page to be asked", b.events())
		}
	}
}

func TestRefusedFetchIsCorrectedUnderTheSameToken(t *testing.T) {
	s := scriptShop(t, token.Config{})
	b := s.open("/")
	b.waitForToken()
	b.fill("[name=quantity]", "0")
	b.click("#buy")
	b.wait(`window.answers.join() === "422"`)
	b.fill("[name=quantity]", "3")
	b.click("#buy")
	b.waitForOrder(1)
	s.wantOrders("mug x 3")
	s.wantOneToken(2)
	if s.asked != 0 {
		t.Error("the client had to ask how the token stands, though it has seen the answer")
	}
}

func TestMistakesInACallAreNotTriedAgain(t *testing.T) {
	s := scriptShop(t, token.Config{})
	b := s.open("/")
	b.waitForToken()
	b.eval(`send({ mode: "nonsense" })`)
	b.wait(`window.answers.join() === "TypeError"`)
	if got := b.events(); got != "ready" {
		t.Errorf("events %q", got)
	}
	if b.text(`Array.from({ length: 20 }, () => submitOnce.form("checkout")).every((f) => f === submitOnce.form(document.querySelector("form")))`) != "true" {
		t.Error("asking for a form gives another one each time")
	}
	if s.drawn != 1 {
		t.Errorf("%d tokens drawn, want 1", s.drawn)
	}
}

func TestFetchSendsWhateverFetchSends(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.pages["/"] = strings.Replace(scriptForm, "<form ", `<form method="post" action="/orders" `, 1)
	b := s.open("/")
	b.waitForToken()
	const multipart = `(() => { const data = new FormData(document.querySelector("form")); data.set("quantity", Q); data.append("file", new Blob(["x"]), "a.txt"); return data; })()`
	for i, body := range []string{
		multipart,
		`new URLSearchParams({ item: "mug", quantity: Q, submit_token: "of the page" })`,
		`new Blob([JSON.stringify({ item: "mug", quantity: Q })], { type: "application/json" })`,
		`new TextEncoder().encode(JSON.stringify({ item: "mug", quantity: Q }))`,
		`new Blob([JSON.stringify({ item: "mug", quantity: Q })]).stream()`,
	} {
		quantity := string(rune('1' + i))
		options := `{ body: ` + strings.ReplaceAll(body, "Q", `"`+quantity+`"`) + `, headers: ` + map[bool]string{true: `{}`, false: `{ "Content-Type": "application/json" }`}[i < 2] + `}`
		b.eval(`send(` + options + `); send(` + options + `)`)
		b.waitForOrder(i + 1)
	}
	b.eval(`submitOnce.fetch("checkout", new Request("/orders", { method: "PUT", body: "nothing" })).then((r) => window.answers.push("put " + r.status))`)
	b.wait(`window.answers.includes("put 405")`)
	b.eval(`submitOnce.fetch("checkout", "/log.js", { method: "GET" }).then((r) => window.answers.push("get " + r.status))`)
	b.wait(`window.answers.includes("get 200")`)
	s.wantOrders("mug x 1", "mug x 2", "mug x 3", "mug x 4", "mug x 5")
	if n := len(s.seen()); n != 5 {
		t.Errorf("%d submits for 5 double ones; %s", n, s.report())
	}
}

func TestFormsWithoutAnElement(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.pages["/"] = `<title>App</title><script src="/submitonce.js"></script>`
	b := s.open("/")
	const order = `fetch("/orders", { headers: { "Content-Type": "application/json" }, body: '{"item":"mug","quantity":"1"}' }).then((r) => r.json()).then((o) => window.numbers.push(o.order_no))`
	b.eval(`window.numbers = []; for (let i = 0; i < 3; i++) submitOnce.form("checkout", { instance: "cart-42" }).` + order)
	b.wait(`window.numbers.join() === "1,1,1"`)
	b.eval(`submitOnce.form("checkout").` + order)
	b.wait(`window.numbers.join() === "1,1,1,2"`)
	b.eval(`submitOnce.form("checkout").` + order)
	b.wait(`window.numbers.join() === "1,1,1,2,2"`)
	b.eval(`submitOnce.form("checkout").renew().then(() => submitOnce.form("checkout").` + order + `)`)
	b.wait(`window.numbers.join() === "1,1,1,2,2,3"`)
	// Renewing at each click changes nothing before the outcome is there.
	open := s.holdHandlers()
	b.eval(`submitOnce.form("").renew().then(() => submitOnce.form("").` + order + `)`)
	s.waitForRuns(4)
	b.eval(`submitOnce.form("").renew().then(() => submitOnce.form("").` + order + `)`)
	open()
	b.wait(`window.numbers.join() === "1,1,1,2,2,3,4,4"`)
	s.wantOrders("mug x 1", "mug x 1", "mug x 1", "mug x 1")
}

func TestXMLHttpRequestCarriesTheToken(t *testing.T) {
	s := scriptShop(t, token.Config{})
	s.scripts["/app.js"] = `
document.querySelector("form").addEventListener("submit", (e) => {
  e.preventDefault();
  const xhr = new XMLHttpRequest();
  xhr.open("POST", "/orders");
  xhr.addEventListener("load", () => { if (xhr.status === 201) document.querySelector("#order").textContent = JSON.parse(xhr.responseText).order_no; });
  submitOnce.form(e.target).send(xhr, new FormData(e.target));
});`
	b := s.open("/")
	b.waitForToken()
	b.fill("[name=quantity]", "0")
	b.click("#buy")
	s.waitForAnswers(1)
	b.wait(`!document.querySelector("form").ariaBusy`)
	b.fill("[name=quantity]", "2")
	b.click("#buy")
	b.click("#buy")
	b.waitForOrder(1)
	s.waitForAnswers(3)
	s.wantOrders("mug x 2")
	s.wantOneToken(3)
	b.wait(`window.events.filter((e) => e.startsWith("success")).length === 2`)
	b.fill("[name=quantity]", "3")
	b.click("#buy")
	b.waitForOrder(2)
	s.wantOrders("mug x 2", "mug x 3")
}
