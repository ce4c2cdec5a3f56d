package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

const maxCallback = 64 << 10 // bytes

// An event is what a callback tells.
type event struct {
	TransactionID string `json:"transaction_id"`
	Type          string `json:"type"`
	OrderNo       string `json:"order_no"`
	Amount        int64  `json:"amount"` // in cents
}

type eventKey struct{}

// eventOf returns the event of a verified callback.
func eventOf(ctx context.Context) event {
	e, _ := ctx.Value(eventKey{}).(event)
	return e
}

// sign returns what the provider puts into X-Signature.
func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// verified lets only the provider's callbacks through. It stands outside the
// guard: a key function's keys can be guessed, and a forged callback must neither
// learn the first answer nor occupy the key of the real one.
func verified(secret string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallback))
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			http.Error(w, "callback too large", http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			http.Error(w, "callback broke off", http.StatusBadRequest)
			return
		case !hmac.Equal([]byte(r.Header.Get("X-Signature")), []byte(sign(secret, body))):
			http.Error(w, "wrong signature", http.StatusUnauthorized)
			return
		}
		var e event
		if err := json.Unmarshal(body, &e); err != nil {
			http.Error(w, "not a callback", http.StatusBadRequest)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), eventKey{}, e))
		r.Body = io.NopCloser(bytes.NewReader(body)) // for the guard, which compares it
		next.ServeHTTP(w, r)
	})
}
