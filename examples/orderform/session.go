package main

import (
	"crypto/rand"
	"net/http"
)

const sessionCookie = "shop_session"

// subject names who a submit token is bound to: the visitor's session. Clients
// without cookies, such as curl, share the empty subject; what they hold is only
// as secret as their token.
func subject(r *http.Request) string {
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return ""
	}
	return c.Value
}

// withSession returns r with a session, and the cookie to set if it is new.
func withSession(r *http.Request) (*http.Request, *http.Cookie) {
	if subject(r) != "" {
		return r, nil
	}
	c := &http.Cookie{
		Name: sessionCookie, Value: rand.Text(), Path: "/",
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	r = r.Clone(r.Context())
	r.AddCookie(c)
	return r, c
}
