package testserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A process is a server's own process, in a group of its own, so that what it
// forks can be stopped with it.
type process struct {
	name string
	args []string
	cred *syscall.Credential

	mu   sync.Mutex
	cmd  *exec.Cmd     // guarded by mu; nil while it does not run
	gone chan struct{} // guarded by mu; closed when cmd has ended
	out  *tail
}

// A tail keeps the end of what a server says, for the message of a failure.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - 4<<10; over > 0 {
		t.b = t.b[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.b))
}

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return fmt.Errorf("testserver: %s runs already", p.name)
	}
	p.out = new(tail)
	cmd := exec.Command(p.name, p.args...)
	cmd.Stdout, cmd.Stderr = p.out, p.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.cred}
	dieWithParent(cmd.SysProcAttr)
	started, gone := make(chan error), make(chan struct{})
	go func() {
		defer close(gone)
		// Linux takes the end of the thread that started a process for the
		// parent's death, so that thread has to live as long as the server.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // servers are ended by signals
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("testserver: start %s: %w", p.name, err)
	}
	p.cmd, p.gone = cmd, gone
	return nil
}

// signal reaches the process and all that it has forked.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		signalFamily(p.cmd.Process.Pid, s)
	}
}

// end sends s to the process, SIGKILL to all that it has forked as well, and
// waits until it has ended.
func (p *process) end(s syscall.Signal) {
	p.mu.Lock()
	cmd, gone := p.cmd, p.gone
	p.cmd = nil
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	if s == syscall.SIGKILL {
		signalFamily(cmd.Process.Pid, s)
	} else {
		_ = syscall.Kill(cmd.Process.Pid, s) // it may be gone already
	}
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		signalFamily(cmd.Process.Pid, syscall.SIGKILL)
		<-gone
	}
}

// ended is closed when the process has ended.
func (p *process) ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// waitFor calls ready until it succeeds.
func (p *process) waitFor(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended():
			return fmt.Errorf("testserver: %s ended: %s", p.name, p.out)
		case <-ctx.Done():
			return fmt.Errorf("testserver: %s does not answer: %w: %s", p.name, err, p.out)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// findBinary looks in PATH and then in the folders that match patterns.
func findBinary(name string, patterns ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(filepath.Join(pattern, name)) // the patterns are well-formed
		if len(found) > 0 {
			return found[len(found)-1], nil // the newest version
		}
	}
	return "", fmt.Errorf("testserver: no %s in PATH", name)
}

// unprivileged returns the user that a server runs as which refuses to run as
// root, or nil if this process is not root.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("testserver: neither a user postgres nor nobody, and root may not run PostgreSQL")
}
