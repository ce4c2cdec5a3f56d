package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
)

// An account is what an order owes and has got, in cents.
type account struct {
	due  int64
	paid int64
}

// accounts is where payments arrive. In production it is a database, and the
// update of the account is conditional on its state.
type accounts struct {
	log *slog.Logger

	mu      sync.Mutex
	byOrder map[string]*account
	events  map[string]int64 // amounts by transaction, as acted upon
	reports int              // of what a person has to look at
}

func newAccounts(log *slog.Logger) *accounts {
	return &accounts{log: log, byOrder: make(map[string]*account), events: make(map[string]int64)}
}

func (a *accounts) open(orderNo string, due int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byOrder[orderNo] = &account{due: due}
}

// pay is the handler behind the guard: it runs once for each event.
//
// What trying again cannot mend is acknowledged with a 2xx and reported, or the
// provider would repeat it for a day. What it can mend is answered with an error,
// which gives the key back.
func (a *accounts) pay(w http.ResponseWriter, r *http.Request) {
	e := eventOf(r.Context())
	a.mu.Lock()
	defer a.mu.Unlock()
	acc, ok := a.byOrder[e.OrderNo]
	switch {
	case e.Type != "payment.succeeded":
		acknowledge(w, "ignored")
		return
	case !ok: // the callback may have overtaken the order
		http.Error(w, "no such order yet", http.StatusNotFound)
		return
	}
	a.events[e.TransactionID] = e.Amount
	if e.Amount != acc.due {
		a.report("the amount paid is not the amount due", e, acc.due)
		acknowledge(w, "reported")
		return
	}
	acc.paid += e.Amount
	acknowledge(w, "paid")
}

// repeated answers a callback whose transaction and type have been seen with
// another body. If only the envelope differs, such as the time of delivery, it is
// a duplicate like any other; if it is about another amount, somebody has to look
// at it. Neither gets better by being sent again.
func (a *accounts) repeated(w http.ResponseWriter, r *http.Request) {
	e := eventOf(r.Context())
	a.mu.Lock()
	defer a.mu.Unlock()
	if amount, ok := a.events[e.TransactionID]; ok && amount != e.Amount {
		a.report("one transaction came with two amounts", e, amount)
		acknowledge(w, "reported")
		return
	}
	acknowledge(w, "known")
}

// report is where a counter and an alarm belong. a.mu is held.
func (a *accounts) report(what string, e event, expected int64) {
	a.reports++
	a.log.Error(what, "transaction", e.TransactionID, "order_no", e.OrderNo, "amount", e.Amount, "expected", expected)
}

func acknowledge(w http.ResponseWriter, status string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"status": status}) // a client that is gone comes back
}
