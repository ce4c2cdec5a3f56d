package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxBody     = 10 << 20 // bytes of an order, files and all
	maxItem     = 100      // characters
	maxQuantity = 1_000_000
)

// A form is an order as the client wrote it.
type form struct {
	Item     string
	Quantity string
}

// readForm reads the order from a body of any type that browsers and API clients
// send.
func readForm(w http.ResponseWriter, r *http.Request) (form, *problem) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		media = ""
	}
	var f form
	switch media {
	case "application/json":
		f, err = readJSON(r.Body)
	case "application/x-www-form-urlencoded":
		err = r.ParseForm()
		f = form{Item: r.PostForm.Get("item"), Quantity: r.PostForm.Get("quantity")}
	case "multipart/form-data":
		err = r.ParseMultipartForm(1 << 20)
		if r.MultipartForm != nil {
			defer func() { _ = r.MultipartForm.RemoveAll() }() // the system empties its temporary folder, too
		}
		f = form{Item: r.PostForm.Get("item"), Quantity: r.PostForm.Get("quantity")}
	default:
		return f, refuse(http.StatusUnsupportedMediaType,
			"Send the order as application/json, application/x-www-form-urlencoded or multipart/form-data.")
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return f, refuse(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("An order may have up to %d bytes.", tooLarge.Limit))
	case err != nil:
		return f, refuse(http.StatusBadRequest, fmt.Sprintf("The order could not be read as %s: %v.", media, err))
	}
	return f, nil
}

func readJSON(body io.Reader) (form, error) {
	var order struct {
		Item     string      `json:"item"`
		Quantity json.Number `json:"quantity"` // 2 or "2"
	}
	decoder := json.NewDecoder(body)
	if err := decoder.Decode(&order); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the body is empty")
		}
		return form{}, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return form{}, errors.New("something follows the JSON object")
	}
	return form{Item: order.Item, Quantity: order.Quantity.String()}, nil
}

// check returns the order that f asks for, or what is wrong by field.
func (f form) check() (order, map[string]string) {
	wrong := make(map[string]string)
	item := strings.TrimSpace(f.Item)
	switch {
	case item == "":
		wrong["item"] = "Choose a piece."
	case !utf8.ValidString(item) || strings.ContainsFunc(item, unicode.IsControl):
		wrong["item"] = "Use letters, digits and signs only."
	case utf8.RuneCountInString(item) > maxItem:
		wrong["item"] = fmt.Sprintf("Use at most %d characters.", maxItem)
	}
	quantity, err := strconv.Atoi(strings.TrimSpace(f.Quantity))
	switch {
	case strings.TrimSpace(f.Quantity) == "":
		wrong["quantity"] = "Say how many."
	case errors.Is(err, strconv.ErrSyntax):
		wrong["quantity"] = "Write a whole number, such as 1."
	case quantity < 1:
		wrong["quantity"] = "Order at least 1."
	case quantity > maxQuantity:
		wrong["quantity"] = fmt.Sprintf("Order at most %d.", maxQuantity)
	}
	if len(wrong) > 0 {
		return order{}, wrong
	}
	return order{Item: item, Quantity: quantity}, nil
}
