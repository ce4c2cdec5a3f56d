package main

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// A reply is an answer before it goes through a framework: what to send, not how.
type reply struct {
	status   int
	location string // "" if there is none
	media    string // "" if there is no body
	body     []byte
}

// A problem is an RFC 9457 problem, with what is wrong by field.
type problem struct {
	Title  string            `json:"title"`
	Status int               `json:"status"`
	Detail string            `json:"detail"`
	Errors map[string]string `json:"errors,omitempty"`
}

func refuse(status int, detail string) *problem {
	return &problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// reply returns the problem as JSON.
func (p *problem) reply() reply {
	return jsonReply(p.Status, "application/problem+json", p)
}

func jsonReply(status int, media string, v any) reply {
	body, err := json.Marshal(v)
	if err != nil { // nothing here holds what JSON has no form for
		return reply{status: http.StatusInternalServerError}
	}
	return reply{status: status, media: media, body: append(body, '\n')}
}

// prefersHTML reports whether a client would rather have a page than JSON: a
// browser's form would, fetch and curl would not.
func prefersHTML(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return quality(accept, "text/html") > quality(accept, "application/json")
}

// prefersJSON reports whether a client has asked for JSON rather than a page.
func prefersJSON(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return quality(accept, "application/json") > quality(accept, "text/html")
}

// quality returns how much accept wants media, from 0 to 1 (RFC 9110, section
// 12.5.1: the most specific range counts).
func quality(accept, media string) float64 {
	major, _, _ := strings.Cut(media, "/")
	best, quality := 0, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		specific := 0
		switch name {
		case media:
			specific = 3
		case major + "/*":
			specific = 2
		case "*/*":
			specific = 1
		}
		if specific <= best {
			continue
		}
		best, quality = specific, 1
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			quality = q
		}
	}
	return quality
}
