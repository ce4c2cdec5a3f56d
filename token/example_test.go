package token_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html/template"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/submitonce/submitonce/token"
)

// sessionID stands for what tells one visitor from another on your site.
func sessionID(r *http.Request) string {
	cookie, err := r.Cookie("session")
	if err != nil {
		return ""
	}
	return cookie.Value
}

// exampleIssuer returns an Issuer with keys that were drawn just now. In
// production every process reads the same keys from a file or a vault.
func exampleIssuer() *token.Issuer {
	secret := make([]byte, 32)
	rand.Read(secret)
	ring, err := token.NewKeyring(secret)
	if err != nil {
		log.Fatal(err)
	}
	iss, err := token.New(ring, token.Config{Subject: sessionID})
	if err != nil {
		log.Fatal(err)
	}
	return iss
}

func Example() {
	iss := exampleIssuer()

	// When the page loads:
	tok := iss.Issue("checkout", "anna")
	fmt.Println("characters:", len(tok.Value))

	// When the form comes back (the guard of package replay does this):
	claims, err := iss.Verify(tok.Value, "checkout", "anna")
	fmt.Println("verified:", err == nil, claims.ExpiresAt.Sub(claims.IssuedAt))

	_, err = iss.Verify(tok.Value, "checkout", "ben")
	fmt.Println("sent by somebody else:", err)

	// Output:
	// characters: 48
	// verified: true 24h0m0s
	// sent by somebody else: token: invalid
}

// The key is changed without refusing a token that is out on a page.
func ExampleNewKeyring_rotation() {
	oldKey, newKey := make([]byte, 32), make([]byte, 32)
	rand.Read(oldKey)
	rand.Read(newKey)
	issuer := func(newest []byte, older ...[]byte) *token.Issuer {
		ring, err := token.NewKeyring(newest, older...)
		if err != nil {
			log.Fatal(err)
		}
		iss, err := token.New(ring, token.Config{})
		if err != nil {
			log.Fatal(err)
		}
		return iss
	}
	before := issuer(oldKey)           // what runs today
	prepared := issuer(oldKey, newKey) // 1. everywhere: verify the new key, too
	switched := issuer(newKey, oldKey) // 2. everywhere: sign with it
	after := issuer(newKey)            // 3. once the old tokens are of no more use

	onAPage := before.Issue("checkout", "").Value
	_, err := switched.Verify(onAPage, "checkout", "")
	fmt.Println("old token after the switch:", err)

	early := switched.Issue("checkout", "").Value
	_, err = prepared.Verify(early, "checkout", "")
	fmt.Println("new token in a process that has not switched yet:", err)

	_, err = after.Verify(onAPage, "checkout", "")
	fmt.Println("old token after its key is gone:", err)

	// Output:
	// old token after the switch: <nil>
	// new token in a process that has not switched yet: <nil>
	// old token after its key is gone: token: invalid
}

// One cart is ordered once, in however many tabs it stands open.
func ExampleIssuer_IssueInstance() {
	iss := exampleIssuer()
	record := func(tok token.Token) string {
		claims, err := iss.Verify(tok.Value, "checkout", "anna")
		if err != nil {
			log.Fatal(err)
		}
		return string(claims.ID.AppendKey(nil))
	}
	tab1 := record(iss.IssueInstance("checkout", "anna", "cart-42"))
	tab2 := record(iss.IssueInstance("checkout", "anna", "cart-42"))
	other := record(iss.IssueInstance("checkout", "anna", "cart-43"))
	fmt.Println("second tab, same submit:", tab1 == tab2)
	fmt.Println("other cart, same submit:", tab1 == other)

	// Output:
	// second tab, same submit: true
	// other cart, same submit: false
}

func ExampleIssuer_Handler() {
	iss := exampleIssuer()
	mux := http.NewServeMux()
	mux.Handle("/submit-token", iss.Handler())

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/submit-token?form=checkout", nil))

	var tok token.Token
	if err := json.Unmarshal(w.Body.Bytes(), &tok); err != nil {
		log.Fatal(err)
	}
	_, err := iss.Verify(tok.Value, "checkout", "")
	fmt.Println(w.Code, w.Header().Get("Cache-Control"), err)
	fmt.Println(w.Header().Get(token.HeaderName) == tok.Value)

	// Output:
	// 200 no-store <nil>
	// true
}

// A form that works without JavaScript.
func ExampleIssuer_Field() {
	iss := exampleIssuer()
	page := template.Must(template.New("page").Parse(`<form method="post" action="/orders">{{.Token}} ... </form>`))

	handler := func(w http.ResponseWriter, r *http.Request) {
		data := struct{ Token template.HTML }{iss.Field(w, r, "checkout")}
		if err := page.Execute(w, data); err != nil {
			log.Print(err)
		}
	}

	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Header().Get("Cache-Control"))
	os.Stdout.WriteString(hiddenField.ReplaceAllString(w.Body.String(), `<input type="hidden" name="submit_token" value="...">`))

	// Output:
	// no-store
	// <form method="post" action="/orders"><input type="hidden" name="submit_token" value="..."> ... </form>
}

// A token that is drawn when the button is clicked tells the server that each
// click is another order. Draw it when the page loads, and send the same one
// with every click.
func Example_freshTokenPerClick_incorrect() {
	iss := exampleIssuer()
	submits := map[token.ID]bool{}
	send := func(tok token.Token) {
		claims, err := iss.Verify(tok.Value, "checkout", "anna")
		if err != nil {
			log.Fatal(err)
		}
		submits[claims.ID] = true
	}

	click := func() { send(iss.Issue("checkout", "anna")) } // wrong: the token belongs to the page
	click()
	click()
	fmt.Println("two clicks, a token each:", len(submits), "orders")

	clear(submits)
	tok := iss.Issue("checkout", "anna") // right: once, when the page loads
	click = func() { send(tok) }
	click()
	click()
	fmt.Println("two clicks, one token:", len(submits), "order")

	// Output:
	// two clicks, a token each: 2 orders
	// two clicks, one token: 1 order
}
