//go:build !linux

package testserver

import "time"

// pause waits for d, or longer where the runtime's timer is coarser.
func pause(d time.Duration) { time.Sleep(d) }
