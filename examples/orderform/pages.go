package main

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"net/http"
	"strconv"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

//go:embed page
var files embed.FS

var pages = template.Must(template.New("").ParseFS(files, "page/*.html"))

// A ware is a piece that the shop shows. Anything else that an order names is
// made to order.
type ware struct {
	Name, Title, Note string
	Price             int // in euros
}

var wares = []ware{
	{"mug", "Tall mug", "Celadon, 35 cl", 28},
	{"bowl", "Noodle bowl", "Iron yellow, 90 cl", 34},
	{"vase", "Shoulder vase", "Copper red, 26 cm", 62},
}

func wareOf(item string) ware {
	for _, w := range wares {
		if w.Name == item {
			return w
		}
	}
	return ware{Name: "", Title: item, Note: "Made to order"}
}

// A button makes one trouble; page/assets/troubles.js says how.
type button struct{ ID, Name, Note string }

var buttons = []button{
	{"double", "Double click", "Twice, 150 ms apart"},
	{"five", "Five at once", "Parallel, one token"},
	{"cut", "Cut the answer", "Ordered, then line dead"},
	{"refresh", "Refresh", "Reload while it is sent"},
	{"tab", "Second tab", "One cart, sent from both"},
	{"slow", "Slow handler", "4 s, four impatient clicks"},
	{"correct", "Corrected form", "Quantity 0, then right"},
	{"mistake", "The mistake", "A fresh token per click"},
}

// A pageData is what all pages show.
type pageData struct {
	Title     string
	Framework string
	Store     string

	// On the pages with the form.
	Wares    []ware
	Troubles []button
	Field    template.HTML // the hidden field with the submit token
	Form     form
	Errors   map[string]string
	Orders   []orderLine // the last ones
	Count    int         // of all orders
	Address  string      // of the shop, for the commands

	// On an order's page.
	Order order
	Ware  ware
	Tally tally

	Problem *replay.Problem
}

type orderLine struct {
	order
	Ware ware
}

func (s *shop) newPage(r *http.Request, title string) pageData {
	names := map[string]string{"nethttp": "net/http", "gin": "Gin", "echo": "Echo"}
	return pageData{
		Title:     title,
		Framework: names[s.options.framework],
		Store:     s.options.store,
		Address:   "http://" + r.Host,
	}
}

// indexPage is the shop with an empty form.
func (s *shop) indexPage(r *http.Request, field template.HTML) reply {
	d := s.newPage(r, "Once Fired")
	d.Field = field
	d.Form = form{Item: wares[0].Name, Quantity: "1"}
	return s.shopPage(r, http.StatusOK, d)
}

// formPage is the form as it was sent, with what is wrong in red. Its token
// stays: the guard has given the key back, so that the corrected form can run.
func (s *shop) formPage(r *http.Request, f form, p *problem) reply {
	d := s.newPage(r, "Please correct: Once Fired")
	d.Form, d.Errors = f, p.Errors
	d.Field = template.HTML(fmt.Sprintf(`<input type="hidden" name=%q value="%s" autocomplete="off">`,
		token.FieldName, template.HTMLEscapeString(submittedToken(r))))
	return s.shopPage(r, p.Status, d)
}

func submittedToken(r *http.Request) string {
	if value := r.Header.Get(token.HeaderName); value != "" {
		return value
	}
	return r.PostForm.Get(token.FieldName)
}

func (s *shop) shopPage(r *http.Request, status int, d pageData) reply {
	d.Wares, d.Troubles = wares, buttons
	orders, err := s.book.list(r.Context())
	if err != nil { // the form works without
		s.log.WarnContext(r.Context(), "the orders could not be read", "error", err)
	}
	d.Count = len(orders)
	for i := len(orders) - 1; i >= max(0, len(orders)-5); i-- {
		d.Orders = append(d.Orders, orderLine{orders[i], wareOf(orders[i].Item)})
	}
	return s.render("shop.html", status, d)
}

func (s *shop) orderPage(r *http.Request, o order) reply {
	d := s.newPage(r, "Order "+o.No+": Once Fired")
	d.Order, d.Ware, d.Tally = o, wareOf(o.Item), s.journal.tallyOf(o.No)
	return s.render("order.html", http.StatusOK, d)
}

func (s *shop) problemPage(r *http.Request, p replay.Problem) reply {
	d := s.newPage(r, p.Title+": Once Fired")
	d.Problem = &p
	return s.render("problem.html", p.Status, d)
}

// onError answers what the guard refuses: in the shop's own looks for a person.
func (s *shop) onError(w http.ResponseWriter, r *http.Request, err error) {
	if !prefersHTML(r) {
		replay.DefaultOnError(w, r, err)
		return
	}
	p := replay.ProblemOf(err)
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	w.Header().Set("Cache-Control", "no-store")
	send(w, s.problemPage(r, p))
}

func (s *shop) render(name string, status int, d pageData) reply {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, d); err != nil {
		s.log.Error("a page could not be made", "page", name, "error", err)
		return reply{status: http.StatusInternalServerError}
	}
	return reply{status: status, media: "text/html; charset=utf-8", body: b.Bytes()}
}

// Total returns what the order costs, or "" if the piece has no price.
func (d pageData) Total() string {
	if d.Ware.Price == 0 {
		return ""
	}
	return strconv.Itoa(d.Ware.Price * d.Order.Quantity)
}

// assets serves the style, scripts and fonts.
func assets() (http.Handler, error) {
	sub, err := fs.Sub(files, "page/assets")
	if err != nil {
		return nil, fmt.Errorf("assets: %w", err)
	}
	server := http.StripPrefix("/assets/", http.FileServerFS(sub))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // a new build has new files under the same names
		server.ServeHTTP(w, r)
	}), nil
}
