package main

import (
	"os"
	"testing"
)

func databaseURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv("SUBMITONCE_TEST_POSTGRES_URL")
	if url == "" {
		t.Fatal("SUBMITONCE_TEST_POSTGRES_URL names no server")
	}
	return url
}
