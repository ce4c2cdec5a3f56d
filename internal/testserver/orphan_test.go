package testserver_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/submitonce/submitonce/internal/testserver"
)

// TestServersOfAKilledProcessEndWithIt runs this binary again, which starts a server and
// is killed.
func TestServersOfAKilledProcessEndWithIt(t *testing.T) {
	const child = "SUBMITONCE_TEST_ORPHAN"
	if os.Getenv(child) != "" {
		s, err := testserver.NewRedis(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("\naddr " + s.Addr + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until killed
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1", "TMPDIR="+t.TempDir())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr := ""
	for lines := bufio.NewScanner(stdout); addr == "" && lines.Scan(); {
		addr, _ = strings.CutPrefix(lines.Text(), "addr ")
		if !strings.HasPrefix(addr, "127.0.0.1:") {
			addr = ""
		}
	}
	if addr == "" {
		t.Fatal("the child has started no server")
	}
	if _, err := net.Dial("tcp", addr); err != nil {
		t.Fatalf("the child's server: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	end := time.Now().Add(10 * time.Second)
	for {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		_ = c.Close()
		if time.Now().After(end) {
			t.Fatal("the server still listens 10 s after the process that had started it was killed")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestFoldersOfDeadProcessesAreRemoved(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	longAgo := time.Now().Add(-2 * time.Hour)
	const nobody = "999999999" // more than a process id can be
	folders := map[string]bool{
		"submitonce-" + nobody + "-1":                       false,
		"submitonce-" + strconv.Itoa(os.Getpid()) + "-mine": true,
		"submitonce-word-1":                                 true,
		"other-" + nobody + "-1":                            true,
	}
	for name := range folders {
		dir := filepath.Join(tmp, name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chtimes(dir, longAgo, longAgo)); err != nil {
			t.Fatal(err)
		}
	}
	young := "submitonce-" + nobody + "-2"
	folders[young] = true // its process may be one that cannot be seen from here
	if err := os.Mkdir(filepath.Join(tmp, young), 0o700); err != nil {
		t.Fatal(err)
	}
	testserver.StartRedis(t)
	for name, want := range folders {
		if _, err := os.Stat(filepath.Join(tmp, name)); (err == nil) != want {
			t.Errorf("%s: kept %v, want %v", name, err == nil, want)
		}
	}
}
