package submitecho5_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	submitecho5 "github.com/submitonce/submitonce/middleware/echo5"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

func newGuard(t *testing.T) (*replay.Guard, string) {
	t.Helper()
	tokens := must(token.New(must(token.NewKeyring([]byte("thirty-two bytes from your secrets"))), token.Config{}))
	store := must(memstore.New(memstore.Config{}))
	t.Cleanup(func() { _ = store.Close() })
	return must(replay.New(store, replay.Config{Tokens: tokens})), tokens.Issue("", "").Value
}

func TestAnErrorThatNobodyRendersIsNoOutcome(t *testing.T) {
	guard, tok := newGuard(t)
	app, runs := echo.New(), 0
	app.HTTPErrorHandler = func(*echo.Context, error) {} // it only logs, say
	app.POST("/orders", func(*echo.Context) error { runs++; return errors.New("the printer is out of paper") }, submitecho5.Middleware(guard))
	for n := range 2 {
		if w := submit(app, tok); w.Header().Get(replay.DefaultReplayedHeader) != "" || runs != n+1 {
			t.Errorf("submit %d: replayed %q after %d runs, want a run of its own", n+1, w.Header().Get(replay.DefaultReplayedHeader), runs)
		}
	}
}

func TestAStatusThatWasChosenOutsideIsKept(t *testing.T) {
	guard, tok := newGuard(t)
	app := echo.New()
	app.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			must(echo.UnwrapResponse(c.Response())).Status = http.StatusAccepted
			return next(c)
		}
	})
	app.POST("/orders", func(c *echo.Context) error { _, err := c.Response().Write([]byte("tea")); return err }, submitecho5.Middleware(guard))
	for n := range 2 {
		if w := submit(app, tok); w.Code != http.StatusAccepted || w.Body.String() != "tea" {
			t.Errorf("submit %d: %d %q, want 202 tea", n+1, w.Code, w.Body)
		}
	}
}
