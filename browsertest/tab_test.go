package browsertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// A tab drives one tab of the browser.
type tab struct {
	t    testing.TB
	shop *shop
	ctx  context.Context
}

// newTab opens an empty tab in a profile of its own.
func (s *shop) newTab() *tab {
	s.t.Helper()
	return s.attach(browser, chromedp.WithNewBrowserContext())
}

// open opens a page of the shop in a tab, and waits until it is loaded.
func (s *shop) open(path string) *tab {
	s.t.Helper()
	b := s.newTab()
	b.visit(path)
	return b
}

// another opens a page in a second tab of the same visitor.
func (b *tab) another(path string) *tab {
	b.t.Helper()
	second := b.shop.attach(b.ctx)
	second.visit(path)
	return second
}

func (s *shop) attach(parent context.Context, options ...chromedp.ContextOption) *tab {
	s.t.Helper()
	options = append(options, chromedp.WithListener(func(event any) {
		if thrown, ok := event.(*runtime.EventExceptionThrown); ok {
			s.t.Errorf("the page threw: %v", thrown.ExceptionDetails)
		}
	}))
	ctx, cancel := chromedp.NewContext(parent, options...)
	s.t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		s.t.Fatal(err)
	}
	return &tab{t: s.t, shop: s, ctx: ctx}
}

// duplicate opens a copy of the page with a copy of its sessionStorage, which is
// what duplicating a tab does; a window that the page opens inherits it, too.
func (b *tab) duplicate() *tab {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	opened := chromedp.WaitNewTarget(ctx, func(info *target.Info) bool { return info.Type == "page" })
	b.eval(`void window.open(location.href)`)
	select {
	case id := <-opened:
		second := b.shop.attach(b.ctx, chromedp.WithTargetID(id))
		second.wait(`document.readyState === "complete" && location.href !== "about:blank"`)
		return second
	case <-ctx.Done():
		b.t.Fatal("no second tab")
		return nil
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.shop.url + path))
}

// start opens a page and does not wait for it.
func (b *tab) start(path string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	b.t.Cleanup(cancel)
	go func() { _, _ = chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: b.shop.url + path}) }() // what goes wrong is seen by waiting
}

// eval evaluates an expression and drops its value.
func (b *tab) eval(expression string) {
	b.t.Helper()
	call(b, runtime.Evaluate, runtime.EvaluateParams{Expression: expression})
}

func (b *tab) text(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[string](`String(`+expression+`)`))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// wait waits until a condition holds, over whatever navigation there is.
func (b *tab) wait(condition string) {
	b.t.Helper()
	var last error
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	b.shop.until(condition, func() bool {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`Boolean(`+condition+`)`))
		last = err // while a page is being left, there is nowhere to ask
		return err == nil && ok
	}, func() string {
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		where, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body?.innerText + "\n" + JSON.stringify(window.events)`))
		return fmt.Sprintf("%v; the page is %s", last, where)
	})
}

func (b *tab) waitForOrder(number int) {
	b.t.Helper()
	b.wait(fmt.Sprintf(`document.querySelector("#order")?.textContent === "%d" && document.readyState === "complete"`, number))
}

// record is what the client remembers of the first form of the page.
const record = `JSON.parse(Object.entries(sessionStorage).find(([key]) => key.startsWith('submitonce:["' + location.pathname))?.[1] ?? "{}")`

// waitForToken waits until the form has a token in its hands and returns it.
func (b *tab) waitForToken() string {
	b.t.Helper()
	b.wait(`document.readyState === "complete" && ` + record + `.owner`)
	return b.text(record + `.token`)
}

// A place is where to click. While a page is being left, nothing can be asked of
// it, but it can be clicked on.
type place struct{ x, y float64 }

func (b *tab) find(selector string) place {
	b.t.Helper()
	at, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(
		`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`, selector)))
	if err != nil {
		b.t.Fatalf("%s: %v", selector, err)
	}
	return place{at[0], at[1]}
}

// click presses and releases the mouse over an element.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.clickAt(b.find(selector))
}

func (b *tab) clickAt(p place) {
	b.t.Helper()
	b.do(chromedp.MouseClickXY(p.x, p.y))
}

// fill types a value into a field, in place of what stands there.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`document.querySelector(%q).focus(); document.querySelector(%q).select()`, selector, selector))
	b.do(chromedp.KeyEvent(value))
}

func (b *tab) press(key string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(key))
}

// back goes back by the browser's button.
func (b *tab) back() {
	b.t.Helper()
	b.step(-1)
}

func (b *tab) step(by int64) {
	b.t.Helper()
	history := call(b, page.GetNavigationHistory, cdp.Empty{})
	entry := history.Entries[history.CurrentIndex+by]
	call(b, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: entry.ID})
	b.wait(fmt.Sprintf(`location.href === %q && document.readyState === "complete"`, entry.URL))
}

// reload reloads the page by the browser's button, and says yes to sending a
// form once more.
func (b *tab) reload() {
	b.t.Helper()
	b.eval(`window.beforeReload = true`)
	call(b, page.Reload, page.ReloadParams{})
	b.wait(`!window.beforeReload && document.readyState === "complete"`)
}

// withoutScript turns JavaScript off for the pages that follow.
func (b *tab) withoutScript() {
	b.t.Helper()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// events returns the names of the client's events that the page has seen.
func (b *tab) events() string {
	b.t.Helper()
	return b.text(`window.events.join(" ")`)
}
