package testserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// tempDir makes a folder that cred can use. It removes what processes that were
// killed have left behind.
func tempDir(cred *syscall.Credential) (string, error) {
	removeAbandoned(os.TempDir())
	dir, err := os.MkdirTemp("", fmt.Sprintf("submitonce-%d-", os.Getpid()))
	if err != nil {
		return "", err
	}
	if cred != nil {
		if err := os.Chown(dir, int(cred.Uid), int(cred.Gid)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// removeAbandoned removes the folders in dir of processes that have ended. Their
// age is asked, too, since a process of another container cannot be seen.
func removeAbandoned(dir string) {
	dirs, _ := filepath.Glob(filepath.Join(dir, "submitonce-*-*")) // the pattern is well-formed
	for _, d := range dirs {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(d), "submitonce-%d-", &pid); err != nil {
			continue
		}
		info, err := os.Stat(d)
		if err != nil || time.Since(info.ModTime()) < time.Hour {
			continue
		}
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(d)
		}
	}
}

// The bus of a cluster's node listens this much higher than the node.
const busOffset = 10000

// freePort draws a port below those that systems give to outgoing connections,
// so that none of them takes it before the server does. The port of a cluster's
// bus is free as well.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 12000 + rand.IntN(20000)
		if err = errors.Join(listens(port), listens(port+busOffset)); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("testserver: no free port: %w", err)
}

func listens(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
