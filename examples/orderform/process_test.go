package main

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/submitonce/submitonce/internal/testserver"
)

// The test binary is the shop when this is set.
const childVariable = "ORDERFORM_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
		return
	}
	testserver.Main(m)
}

// A process is a shop that runs by itself.
type process struct {
	*client
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	once   sync.Once
	err    error
}

var openOn = regexp.MustCompile(`open on (http://[^ ]+)`)

// start starts a shop on a free port and waits until it is open.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{stderr: new(bytes.Buffer)}
	p.cmd = exec.Command(exe, append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	p.cmd.Env = append(os.Environ(), childVariable+"=1")
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		p.wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := openOn.FindStringSubmatch(lines.Text()); m != nil {
			p.client = &client{t: t, base: m[1], http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
			return p
		}
	}
	p.wait()
	t.Fatalf("the shop did not open: %v: %s", p.err, p.stderr)
	return nil
}

// wait returns how the process ended.
func (p *process) wait() error {
	p.once.Do(func() { p.err = p.cmd.Wait() })
	return p.err
}

func TestBadFlagsExitWithTwoAndSayWhy(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"-framework", "rails"}, `-framework "rails": want nethttp, gin, echo`},
		{[]string{"-store", "floppy"}, `-store "floppy": want memory, redis, postgres, postgres-tx, sqlite, tiered`},
		{[]string{"-delay", "-1s"}, "-delay -1s: want 0 to 4m0s"},
		{[]string{"-delay", "soon"}, `invalid value "soon"`},
		{[]string{"-nonsense"}, "flag provided but not defined: -nonsense"},
		{[]string{"serve"}, `unexpected argument "serve"`},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(t.Context(), tt.args, &out, &errs); code != 2 {
				t.Errorf("exit status %d, want 2", code)
			}
			if !strings.Contains(errs.String(), tt.want) {
				t.Errorf("the message does not have %q: %s", tt.want, errs.String())
			}
			if n := strings.Count(errs.String(), "\n"); n != 1 {
				t.Errorf("the message has %d lines, want 1: %s", n, errs.String())
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, &out, &errs); code != 0 || !strings.Contains(errs.String(), "-secret-file") {
		t.Errorf("exit status %d, want 0 and the flags: %s", code, errs.String())
	}
}

func TestTakenAddressIsNamed(t *testing.T) {
	p := start(t)
	addr := strings.TrimPrefix(p.base, "http://")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-addr", addr}, &out, &errs); code != 1 {
		t.Errorf("exit status %d, want 1", code)
	}
	// Nothing comes before it, such as a warning that is true only of an open shop.
	if want := "orderform: cannot listen on " + addr; !strings.HasPrefix(errs.String(), want) {
		t.Errorf("the message does not begin with %q: %s", want, errs.String())
	}
}

func TestFileThatCannotBeOpenedIsNamed(t *testing.T) {
	var out, errs bytes.Buffer
	file := filepath.Join(t.TempDir(), "missing", "shop.db")
	code := run(t.Context(), []string{"-addr", "127.0.0.1:0", "-store", "sqlite", "-sqlite-file", file}, &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "-sqlite-file: ") || !strings.Contains(errs.String(), file) {
		t.Errorf("exit status %d, want 1 and the file's name: %s", code, errs.String())
	}
}

func TestSecretFileKeepsPagesGoodOverARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	first := start(t, "-secret-file", file)
	token := first.token("form=order")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the file's mode is %o, want 600", got)
	}
	if err := first.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := first.wait(); err != nil {
		t.Errorf("the shop ended with %v: %s", err, first.stderr)
	}
	if strings.Contains(first.stderr.String(), "WARNING") {
		t.Errorf("a shop with a secret file warns: %s", first.stderr)
	}
	again := start(t, "-secret-file", file)
	again.want(again.order(token, asJSON, `{"item":"mug","quantity":1}`), http.StatusCreated)

	// Without the file, the old page is refused, and the log has said so.
	other := start(t)
	other.want(other.order(token, asJSON, `{"item":"mug","quantity":1}`), http.StatusForbidden)
	_ = other.cmd.Process.Kill()
	_ = other.wait() // killed
	if !strings.Contains(other.stderr.String(), "WARNING: the signing secret is a demo secret") {
		t.Errorf("a shop without a secret file does not warn: %s", other.stderr)
	}
}

func TestBadSecretFileIsNotUsed(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "short": "abcd", "not hex": strings.Repeat("x", 64)} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			if code := run(t.Context(), []string{"-addr", "127.0.0.1:0", "-secret-file", file}, &out, &errs); code != 1 {
				t.Errorf("exit status %d, want 1", code)
			}
			if want := "want at least 64 hex digits"; !strings.Contains(errs.String(), want) {
				t.Errorf("the message does not have %q: %s", want, errs.String())
			}
		})
	}
}

func TestShopsThatStartTogetherAgreeOnTheSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	secrets := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() {
			var err error
			if secrets[i], err = openSecret(file, new(bytes.Buffer)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range secrets {
		if len(s) != secretLen || !bytes.Equal(s, secrets[0]) {
			t.Errorf("secrets %x and %x, want one of %d bytes", s, secrets[0], secretLen)
		}
	}
}

func TestOrderInTheMakingIsFinishedBeforeTheShopCloses(t *testing.T) {
	for _, framework := range frameworks {
		t.Run(framework, func(t *testing.T) {
			p := start(t, "-framework", framework, "-delay", "700ms")
			page := p.live()
			page.past()
			token := p.token("form=order")
			answers := make(chan answer, 2)
			for range 2 {
				go func() { answers <- p.order(token, asJSON, `{"item":"mug","quantity":1}`) }()
			}
			for begun := make(map[int64]bool); len(begun) < 2; {
				var s submit
				page.next("submit", &s)
				begun[s.ID] = true
			}
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			first, second := <-answers, <-answers
			p.want(first, http.StatusCreated)
			p.want(second, http.StatusCreated, first.body)
			ended := make(chan error, 1)
			go func() { ended <- p.wait() }()
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("the shop ended with %v: %s", err, p.stderr)
				}
			case <-time.After(10 * time.Second): // the open page must not hold it up
				t.Error("the shop does not close")
			}
			if _, err := p.try(http.MethodGet, "/", ""); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("GET / after the end: %v, want a refused connection", err)
			}
		})
	}
}
