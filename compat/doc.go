// Package compat holds tests that mount the library under what its users mount it
// under, and write with what they write with: chi, gorilla/mux and the patterns of
// net/http; GORM, sqlc, Bun and sqlx in the transactional mode of pgstore; httpsnoop
// and otelhttp around it all. It is a module of its own, so that none of them is a
// dependency of the library.
package compat
