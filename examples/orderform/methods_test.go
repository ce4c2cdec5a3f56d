package main

import (
	"net/http"
	"testing"
)

func TestEveryFrameworkTakesTheSameMethods(t *testing.T) {
	tests := []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/", http.StatusOK},
		{http.MethodHead, "/", http.StatusOK},
		{http.MethodHead, "/orders", http.StatusOK},
		{http.MethodHead, "/submit-token", http.StatusOK},
		{http.MethodHead, "/orders/OF-NONE", http.StatusNotFound},
		{http.MethodPut, "/orders", http.StatusMethodNotAllowed},
		{http.MethodDelete, "/orders", http.StatusMethodNotAllowed},
		{http.MethodPost, "/", http.StatusMethodNotAllowed},
		{http.MethodPost, "/orders/OF-NONE", http.StatusMethodNotAllowed},
		{http.MethodGet, "/nothing", http.StatusNotFound},
	}
	everyFramework(t, func(t *testing.T, c *client) {
		for _, tt := range tests {
			a := c.do(tt.method, tt.path, "")
			if a.status != tt.status {
				t.Errorf("%s %s answers %d, want %d", tt.method, tt.path, a.status, tt.status)
			}
			if tt.status == http.StatusMethodNotAllowed && a.header.Get("Allow") == "" {
				t.Errorf("%s %s answers 405 without Allow", tt.method, tt.path)
			}
		}
	})
}
