package browsertest

import (
	"fmt"
	"strings"
	"testing"
)

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

func TestSubmitButtonsValueIsSentWithAHeldSubmit(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = strings.Replace(plainForm, `<button id="buy">`, `<button>First</button><button id="buy" name="quantity" value="7">`, 1)
	s.pages["/"] = strings.Replace(s.pages["/"], `<input name="quantity" value="1">`, "", 1)
	arrive := s.holdTokens()
	b := s.open("/")
	b.click("#buy")
	b.wait(`document.querySelector("form").ariaBusy === "true"`)
	arrive()
	b.waitForOrder(1)
	s.wantOrders("mug x 7")
}

func TestListenersRunOnceForAHeldSubmit(t *testing.T) {
	s := plainShop(t)
	arrive := s.holdTokens()
	b := s.open("/")
	b.eval(`document.addEventListener("submit", () => { sessionStorage.ran = Number(sessionStorage.ran || 0) + 1; })`)
	b.click("#buy")
	b.wait(`document.querySelector("form").ariaBusy === "true"`)
	arrive()
	b.waitForOrder(1)
	if got := b.text(`sessionStorage.ran`); got != "1" {
		t.Errorf("a listener ran %s times, want once", got)
	}
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
