// Package browsertest holds the browser client of package token to its promises
// in a real Chromium, against a small shop with a real guard. It is a module of
// its own, so that what drives the browser stays out of the library's.
package browsertest
