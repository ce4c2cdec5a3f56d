package testserver

import (
	"syscall"
	"time"
)

const (
	prSetTimerSlack = 29                    // PR_SET_TIMERSLACK, prctl(2)
	wakeUp          = 20 * time.Microsecond // what a thread takes to run again
)

// pause waits for d, on a thread that is locked. time.Sleep takes a whole
// millisecond for anything shorter in a process that is idle, because that is
// the unit in which the runtime waits for the network.
func pause(d time.Duration) {
	if d -= wakeUp; d <= 0 {
		return
	}
	if d > time.Second { // nobody will notice the millisecond
		time.Sleep(d)
		return
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0)
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil)
}
