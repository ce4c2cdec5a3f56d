package browsertest

import (
	"strings"
	"testing"
)

const twoTabs = `data-submit-once="checkout" data-submit-once-instance="cart-42"`

func TestTwoTabsOfOneCartOrderOnce(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = strings.Replace(plainForm, `data-submit-once="checkout"`, twoTabs, 1)
	first := s.open("/")
	second := first.another("/")
	first.waitForToken()
	second.waitForToken()
	first.click("#buy")
	first.waitForOrder(1)
	second.click("#buy")
	second.waitForOrder(1)
	s.wantOrders("mug x 1")
	s.wantOneToken(2)
}

func TestTwoTabsWithoutAnInstanceOrderTwice(t *testing.T) {
	s := plainShop(t)
	first := s.open("/")
	second := first.another("/")
	first.waitForToken()
	second.waitForToken()
	first.click("#buy")
	first.waitForOrder(1)
	second.click("#buy")
	second.waitForOrder(2)
	s.wantOrders("mug x 1", "mug x 1")
}

func TestDuplicatedTabGetsATokenOfItsOwn(t *testing.T) {
	s := plainShop(t)
	first := s.open("/")
	token := first.waitForToken()
	second := first.duplicate()
	if copied := second.waitForToken(); copied == token {
		t.Fatal("both tabs hold one token")
	}
	if first.waitForToken() != token {
		t.Error("the first tab has lost its token")
	}
	first.fill("[name=quantity]", "2")
	second.fill("[name=quantity]", "3")
	first.click("#buy")
	first.waitForOrder(1)
	second.click("#buy")
	second.waitForOrder(2)
	s.wantOrders("mug x 2", "mug x 3")
}

func TestDuplicatedTabOfACartSharesItsToken(t *testing.T) {
	s := plainShop(t)
	s.pages["/"] = strings.Replace(plainForm, `data-submit-once="checkout"`, twoTabs, 1)
	first := s.open("/")
	first.waitForToken()
	second := first.duplicate()
	second.waitForToken()
	second.click("#buy")
	second.waitForOrder(1)
	first.click("#buy")
	first.waitForOrder(1)
	s.wantOrders("mug x 1")
}

// A tab that has crashed did not let go of its token.
func TestTokenOfACrashedPageIsTakenOver(t *testing.T) {
	s := plainShop(t)
	b := s.open("/")
	token := b.waitForToken()
	b.eval(`for (const key of Object.keys(sessionStorage)) sessionStorage["copy:" + key] = sessionStorage[key]`)
	b.visit("/nowhere")
	b.eval(`for (const key of Object.keys(sessionStorage)) if (key.startsWith("copy:")) sessionStorage[key.slice(5)] = sessionStorage[key]`)
	b.visit("/")
	if b.waitForToken() != token {
		t.Error("another token")
	}
}

func TestCopyOfATabThatHadLeftTheFormGetsATokenOfItsOwn(t *testing.T) {
	s := plainShop(t)
	first := s.open("/")
	token := first.waitForToken()
	first.visit("/orders/9")
	second := first.duplicate()
	first.visit("/")
	if first.waitForToken() != token {
		t.Fatal("the tab has lost its token")
	}
	second.visit("/")
	second.wait(record + `.token && ` + record + `.token !== "` + token + `"`)
	first.click("#buy")
	first.waitForOrder(1)
	second.click("#buy")
	second.waitForOrder(2)
	s.wantOrders("mug x 1", "mug x 1")
}
