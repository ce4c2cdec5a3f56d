package adaptertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// R027: whatever a handler parses the body with, it finds it whole.
func parsingCases() []testCase {
	type order struct {
		Item     string `json:"item" form:"item"`
		Quantity int    `json:"quantity" form:"quantity"`
	}
	show := func(x Exchange, o order, err error) error {
		if err != nil {
			return err
		}
		return x.Text(201, fmt.Sprintf("%d %s", o.Quantity, o.Item))
	}
	const form, object = "item=tea&quantity=2", `{"item":"tea","quantity":2}`
	multipartKind, multipartBody := parts("aaaa", [][2]string{{"item", "tea"}, {"quantity", "2"}}, "", "")
	tests := []struct {
		name, kind, body string
		handler          Handler
	}{
		{"the framework's Bind of JSON", jsonType, object, func(x Exchange) error {
			var o order
			err := x.Bind(&o)
			return show(x, o, err)
		}},
		{"json.Decoder", jsonType, object, func(x Exchange) error {
			var o order
			err := json.NewDecoder(x.Request().Body).Decode(&o)
			return show(x, o, err)
		}},
		{"ParseForm", formType, form, func(x Exchange) error {
			err := x.Request().ParseForm()
			f := x.Request().PostForm
			return x.Text(201, fmt.Sprint(f.Get("quantity"), " ", f.Get("item"), errorText(err)))
		}},
		{"the framework's form values", formType, form, func(x Exchange) error {
			return x.Text(201, x.Form("quantity")+" "+x.Form("item"))
		}},
		{"ParseMultipartForm", multipartKind, multipartBody, func(x Exchange) error {
			err := x.Request().ParseMultipartForm(1 << 20)
			f := x.Request().PostForm
			return x.Text(201, fmt.Sprint(f.Get("quantity"), " ", f.Get("item"), errorText(err)))
		}},
		{"the framework's values of a multipart form", multipartKind, multipartBody, func(x Exchange) error {
			return x.Text(201, x.Form("quantity")+" "+x.Form("item"))
		}},
		{"MultipartReader", multipartKind, multipartBody, func(x Exchange) error {
			mr, err := x.Request().MultipartReader()
			if err != nil {
				return err
			}
			var values []string
			for {
				p, err := mr.NextPart()
				if err == io.EOF {
					break
				}
				if err != nil {
					return err
				}
				b, _ := io.ReadAll(p)
				values = append(values, string(b))
			}
			return x.Text(201, values[1]+" "+values[0])
		}},
	}
	var cases []testCase
	for _, tt := range tests {
		for _, how := range []string{"with its length", "chunked"} {
			cases = append(cases, testCase{name: "C33 R027 " + tt.name + " " + how, run: func(s *site) {
				s.orders(tt.handler, replay.Config{})
				r := request{token: s.token(), kind: tt.kind}
				send := func() answer {
					if r.body = tt.body; how == "chunked" {
						r.stream = strings.NewReader(tt.body)
					}
					return s.send(r)
				}
				first := send()
				if first.status != 201 || string(first.body) != "2 tea" {
					s.Errorf("handler answers %d %q, want 201 %q", first.status, first.body, "2 tea")
				}
				s.replays(first, send())
				s.ran(1)
			}})
		}
	}
	return cases
}

func errorText(err error) string {
	if err != nil {
		return " " + err.Error()
	}
	return ""
}

// cutOff sends half of a body and ends the connection; the whole one then runs.
func cutOff(s *site) {
	s.orders(func(x Exchange) error {
		b, err := io.ReadAll(x.Request().Body)
		if err != nil {
			return x.Text(201, "half a body is none, whatever the handler says")
		}
		return x.Text(201, fmt.Sprint(len(b)))
	}, replay.Config{})
	for _, size := range []int{1000, 300_000} {
		tok := s.token()
		kind, body := parts("aaaa", nil, "a.png", strings.Repeat("x", size))
		conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
		if err != nil {
			s.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "POST /orders HTTP/1.1\r\nHost: x\r\n%s: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
			token.HeaderName, tok, kind, len(body), body[:len(body)/2])
		_ = conn.(*net.TCPConn).CloseWrite()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			if resp.StatusCode == 201 && size < 64<<10 {
				s.Errorf("half of %d bytes answers 201", size)
			}
			_ = resp.Body.Close() // half an answer, perhaps
		}
		_ = conn.Close()

		r := request{token: tok, kind: kind, body: body}
		first := s.send(r)
		if first.status != 201 || string(first.body) != fmt.Sprint(len(body)) {
			s.Errorf("whole body of %d answers %d %q, want 201 with its size", len(body), first.status, first.body)
		}
		s.replays(first, s.send(r))
	}
}
