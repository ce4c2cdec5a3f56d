package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A Process is an app in a process of its own, which can be killed and paused.
type Process struct {
	config AppConfig

	mu  sync.Mutex
	cmd *exec.Cmd // guarded by mu
}

// startProcess starts this binary anew as an app, and waits until it serves.
func startProcess(ctx context.Context, c AppConfig) (*Process, error) {
	p := &Process{config: c}
	if c.Addr == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		p.config.Addr = l.Addr().String()
		_ = l.Close()
	}
	return p, p.start(ctx)
}

func (p *Process) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := json.Marshal(p.config)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), appEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start an app: %w", err)
	}
	p.cmd = cmd
	return p.ready(ctx)
}

// ready waits until the app serves.
func (p *Process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.config.Addr+"/ready", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the app at %s does not serve: %w", p.config.Addr, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// kill ends the process as kill -9 does, and starts it again.
func (p *Process) restart(ctx context.Context) error {
	p.kill()
	return p.start(ctx)
}

func (p *Process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// waitDead waits until the process has died by itself.
func (p *Process) waitDead() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.cmd.Wait()
	p.cmd = nil
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		return fmt.Errorf("the app ended with %w, not by SIGKILL", err)
	}
	return nil
}

// pause stops the process for d, as a long garbage collection or the move of a
// virtual machine does.
func (p *Process) pause(ctx context.Context, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	defer func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }()
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
