// Package submittest attacks a handler with duplicates in a test of yours, and
// fails the test unless the effect happened once and every answer is the same.
//
//	func TestOrderOnce(t *testing.T) {
//		app, tokens, orders := newApp(t) // behind its guard, as in production
//		tok := tokens.Issue("", "").Value // once, as a page has one
//		submittest.Once(t, app, submittest.Attack{
//			Request: func() *http.Request {
//				r := httptest.NewRequest("POST", "/orders", strings.NewReader(`{"item":"tea"}`))
//				r.Header.Set(token.HeaderName, tok)
//				return r
//			},
//			Effects: orders.Count,
//		})
//	}
//
// It goes through the whole handler that it is given, so give it the app with
// its middleware and not the bare endpoint: a guard in the wrong place shows.
package submittest
