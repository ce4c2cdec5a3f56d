package submitecho5_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/labstack/echo/v5"

	submitecho5 "github.com/submitonce/submitonce/middleware/echo5"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

func Example() {
	ring := must(token.NewKeyring([]byte("thirty-two bytes from your secrets")))
	tokens := must(token.New(ring, token.Config{}))
	store := must(memstore.New(memstore.Config{}))
	defer store.Close()
	guard := must(replay.New(store, replay.Config{Tokens: tokens}))

	orders := 0
	app := echo.New()
	app.GET("/submit-token", echo.WrapHandler(tokens.Handler()))
	app.POST("/orders", func(c *echo.Context) error {
		orders++
		return c.JSON(http.StatusCreated, map[string]any{"order_no": orders, "item": c.FormValue("item")})
	}, submitecho5.Middleware(guard))

	tok := tokens.Issue("", "").Value // one for each page, from GET /submit-token
	for range 3 {
		w := submit(app, tok)
		fmt.Printf("%d %s, replayed %q\n", w.Code, strings.TrimSpace(w.Body.String()), w.Header().Get(replay.DefaultReplayedHeader))
	}
	// Output:
	// 201 {"item":"tea","order_no":1}, replayed ""
	// 201 {"item":"tea","order_no":1}, replayed "true"
	// 201 {"item":"tea","order_no":1}, replayed "true"
}

// submit posts an order and returns the answer.
func submit(app http.Handler, tok string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/orders", strings.NewReader("item=tea"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set(token.HeaderName, tok)
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	return w
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
