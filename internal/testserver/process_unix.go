//go:build unix && !linux

package testserver

import "syscall"

// dieWithParent does nothing where the kernel has no such thing: a killed test
// leaves its servers behind.
func dieWithParent(*syscall.SysProcAttr) {}

// signalFamily sends s to a process and its group. What PostgreSQL has forked is
// in groups of its own and ends when it finds its parent gone.
func signalFamily(pid int, s syscall.Signal) {
	_ = syscall.Kill(pid, s) // any of them may be gone already
	_ = syscall.Kill(-pid, s)
}
