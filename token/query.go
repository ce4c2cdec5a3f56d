package token

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What the token endpoint takes, in bytes. [Issuer.Issue] and
// [Issuer.IssueInstance], whose names do not come from strangers, take any.
const (
	MaxFormLen     = 128 // of a form's name
	MaxInstanceLen = 255 // of an instance's name
)

// A tokenQuery is what a request asks the endpoint for.
type tokenQuery struct {
	form        string
	instance    string
	hasInstance bool
}

// parseQuery reads the query, or says in a sentence for the client what is
// wrong with it.
func parseQuery(rawQuery string) (q tokenQuery, problem string) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return q, "The query is not well-formed."
	}
	if q.form, _, problem = parameter(values, "form", MaxFormLen); problem != "" {
		return q, problem
	}
	q.instance, q.hasInstance, problem = parameter(values, "instance", MaxInstanceLen)
	if problem == "" && q.hasInstance && q.instance == "" {
		// A page that has lost its cart's name must not go on with a fresh token,
		// which would let the cart be ordered once in every tab.
		problem = "The parameter instance is empty; leave it out for a fresh token."
	}
	return q, problem
}

func parameter(values url.Values, name string, limit int) (value string, set bool, problem string) {
	all := values[name]
	if len(all) == 0 {
		return "", false, ""
	}
	value = all[0]
	switch {
	case len(all) > 1:
		problem = fmt.Sprintf("The parameter %s is there more than once.", name)
	case len(value) > limit:
		problem = fmt.Sprintf("The parameter %s has %d bytes; it may have %d.", name, len(value), limit)
	case !utf8.ValidString(value):
		problem = fmt.Sprintf("The parameter %s is not valid UTF-8.", name)
	case strings.ContainsFunc(value, unicode.IsControl):
		problem = fmt.Sprintf("The parameter %s holds a control character.", name)
	}
	return value, true, problem
}
