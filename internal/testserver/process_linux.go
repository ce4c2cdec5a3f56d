package testserver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// dieWithParent makes the kernel end a server when this process ends, however it
// does.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// signalFamily sends s to a process and its children, which PostgreSQL puts into
// groups of their own. The parent comes first, so that it starts no more.
func signalFamily(pid int, s syscall.Signal) {
	_ = syscall.Kill(pid, s) // any of them may be gone already
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// "pid (name) state ppid …"; the name may hold anything.
		var child, parent int
		if _, err := fmt.Sscan(string(stat), &child); err != nil {
			continue
		}
		var state string
		_, err = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent)
		if err == nil && parent == pid {
			_ = syscall.Kill(child, s)
		}
	}
}
