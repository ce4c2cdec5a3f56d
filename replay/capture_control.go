package replay

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Hijack refuses: a connection that is taken over has no response to store. Its
// error is [http.ErrNotSupported], and the handler can still answer.
func (c *capture) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, fmt.Errorf("replay: hijack under a guard: %w", http.ErrNotSupported)
}

// SetReadDeadline reaches the connection; see [http.ResponseController].
func (c *capture) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(c.w).SetReadDeadline(t)
}

// SetWriteDeadline reaches the connection; see [http.ResponseController].
func (c *capture) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(c.w).SetWriteDeadline(t)
}

// EnableFullDuplex reaches the connection; see [http.ResponseController].
func (c *capture) EnableFullDuplex() error {
	return http.NewResponseController(c.w).EnableFullDuplex()
}

// canFlush reports whether what w leads to can flush: the writers of frameworks say
// that they can, and panic if what they wrap cannot.
func canFlush(w http.ResponseWriter) bool {
	for {
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = inner.Unwrap()
	}
	switch w.(type) {
	case http.Flusher, interface{ FlushError() error }:
		return true
	}
	return false
}
