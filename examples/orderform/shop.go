package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// A shop is the application: what it does is said here once, and each framework
// only carries requests to it and replies from it.
type shop struct {
	options options
	tokens  *token.Issuer
	guard   *replay.Guard
	book    book
	journal *journal
	log     *slog.Logger
}

func newShop(o options, secret []byte, b *backend, log *slog.Logger) (*shop, error) {
	ring, err := token.NewKeyring(secret)
	if err != nil {
		return nil, err
	}
	tokens, err := token.New(ring, token.Config{
		Subject: subject,
		// So that instance tokens can be tried with curl, which has no session.
		// A site whose instance names can be guessed leaves this out.
		SharedInstances: true,
	})
	if err != nil {
		return nil, err
	}
	s := &shop{options: o, tokens: tokens, book: b.book, journal: newJournal(), log: log}
	s.guard, err = replay.New(b.store, replay.Config{
		Tokens:      tokens,
		Forms:       []string{"", formName, cartForm},
		Lease:       lease,
		Development: true, // warns of pages that draw a new token for each click
		Observe:     s.journal.observe,
		OnError:     s.onError,
		Logger:      log,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// lease is shorter than the default, for those who kill the shop in mid-order and
// do not like to wait.
const lease = 10 * time.Second

// The forms that /orders takes tokens of.
const (
	formName = "order"    // the shop's own
	cartForm = "checkout" // one token for one cart, in every tab
)

// create answers POST /orders. The guard has made sure that it runs once for
// each submit.
func (s *shop) create(w http.ResponseWriter, r *http.Request) reply {
	ctx := r.Context()
	defer s.journal.run(ctx)()
	html := prefersHTML(r)
	f, p := readForm(w, r)
	if p != nil {
		return s.refusal(r, p)
	}
	o, wrong := f.check()
	if wrong != nil {
		p := refuse(http.StatusUnprocessableEntity, "Correct the fields that are named and send the form again, with the same token.")
		p.Errors = wrong
		if html {
			return s.formPage(r, f, p)
		}
		return p.reply()
	}

	// The order is written first and the time is spent after it, which is the
	// hard case: a crash in between leaves an order without an answer. The next
	// duplicate finds that order by its submit key (or, in a transaction, finds
	// nothing of it and makes it anew).
	standing, fresh, err := s.book.place(ctx, replay.Key(ctx), o)
	if err != nil {
		s.log.ErrorContext(ctx, "an order could not be written", "error", err)
		return s.refusal(r, refuse(http.StatusInternalServerError, "The order could not be written. Send the form again."))
	}
	if o.No = standing.No; o != standing {
		// An earlier attempt died after it had ordered something else.
		return s.refusal(r, refuse(http.StatusUnprocessableEntity, fmt.Sprintf(
			"This form has ordered %d × %s already, as %s.", standing.Quantity, standing.Item, standing.No)))
	}
	s.journal.ordered(ctx, standing.No)
	if !fresh {
		s.log.InfoContext(ctx, "an earlier attempt had made the order", "order_no", standing.No, "attempt", replay.Attempt(ctx))
	}
	if err := work(ctx, s.workFor(ctx)); err != nil {
		return s.refusal(r, refuse(http.StatusServiceUnavailable, "The shop took too long. Send the form again."))
	}

	location := "/orders/" + standing.No
	if html {
		return reply{status: http.StatusSeeOther, location: location}
	}
	created := jsonReply(http.StatusCreated, "application/json", standing)
	created.location = location
	return created
}

// refusal answers with p, as a page where one is wanted.
func (s *shop) refusal(r *http.Request, p *problem) reply {
	if prefersHTML(r) {
		return s.problemPage(r, replay.Problem{Title: p.Title, Status: p.Status, Detail: p.Detail})
	}
	return p.reply()
}

// workFor returns how long an order takes: what -delay says, or what the page
// asks for, to make it visible.
func (s *shop) workFor(ctx context.Context) time.Duration {
	return max(s.options.delay, troubleOf(ctx).delay)
}

// work passes the time that a payment provider would take.
func work(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// list answers GET /orders.
func (s *shop) list(r *http.Request) reply {
	orders, err := s.book.list(r.Context())
	if err != nil {
		s.log.ErrorContext(r.Context(), "the orders could not be read", "error", err)
		return refuse(http.StatusServiceUnavailable, "The orders cannot be read just now.").reply()
	}
	if orders == nil {
		orders = []order{}
	}
	return jsonReply(http.StatusOK, "application/json", orders)
}

// show answers GET /orders/{no}.
func (s *shop) show(r *http.Request, no string) reply {
	o, ok, err := s.book.find(r.Context(), no)
	switch {
	case err != nil:
		s.log.ErrorContext(r.Context(), "an order could not be read", "error", err)
		return s.refusal(r, refuse(http.StatusServiceUnavailable, "The order cannot be read just now."))
	case !ok:
		return s.refusal(r, refuse(http.StatusNotFound, "There is no such order."))
	case prefersJSON(r):
		return jsonReply(http.StatusOK, "application/json", o)
	}
	return s.orderPage(r, o)
}
