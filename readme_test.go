package submitonce_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	module    = "github.com/submitonce/submitonce"
	shop      = module + "/examples/orderform"
	shownAddr = "127.0.0.1:8080" // where the README's programs listen
)

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// blocks returns the fenced blocks of a language in a file.
func blocks(t *testing.T, file, language string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			found = append(found, m[2])
		}
	}
	return found
}

var readmes = []string{"README.md", "README.zh-CN.md"}

// programs returns the whole programs among a file's blocks.
func programs(t *testing.T, file string) []string {
	t.Helper()
	var found []string
	for _, code := range blocks(t, file, "go") {
		if strings.HasPrefix(code, "package main\n") {
			found = append(found, code)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s shows no program", file)
	}
	return found
}

// save makes a program a file.
func save(t *testing.T, code string) string {
	t.Helper()
	main := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(main, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	return main
}

// build builds a package or a file.
func build(t *testing.T, what string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, what).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

func TestReadmeProgramsCompile(t *testing.T) {
	for _, file := range readmes {
		for i, code := range programs(t, file) {
			out, err := exec.CommandContext(t.Context(), "go", "vet", save(t, code)).CombinedOutput()
			if err != nil {
				t.Errorf("%s: program %d: %v\n%s", file, i, err, out)
			}
		}
	}
}

// TestReadmeCommands runs each shell block of the README as a reader would: what
// starts a server in one terminal, the rest in another. What would have to be
// fetched is taken from here.
func TestReadmeCommands(t *testing.T) {
	for _, file := range readmes {
		t.Run(file, func(t *testing.T) {
			var install bool
			var started []string // where servers listen
			var submits, tests int
			for _, block := range blocks(t, file, "sh") {
				switch {
				case block == "go run ./examples/orderform\n":
					addr := freeAddr(t)
					start(t, addr, "exec "+build(t, shop)+" -addr "+addr)
					started = append(started, addr)
				case block == "make test\n": // runs this
					tests++
				case strings.HasPrefix(block, "go mod init "):
					install = strings.HasSuffix(block, "\ngo get "+module+"\n")
				case strings.HasSuffix(block, "go run .\n"):
					addr := freeAddr(t)
					code := strings.ReplaceAll(programs(t, file)[0], shownAddr, addr)
					start(t, addr, strings.Replace(block, "go run .", "exec "+build(t, save(t, code)), 1))
					started = append(started, addr)
				default:
					submits++
					for _, addr := range started {
						submitThrice(t, addr, block)
					}
				}
			}
			if !install || len(started) != 2 || submits != 1 || tests != 1 {
				t.Errorf("install: %v, servers: %d, submits: %d, tests: %d; want one of each, and the shop", install, len(started), submits, tests)
			}
		})
	}
}

func submitThrice(t *testing.T, addr, script string) {
	t.Helper()
	script = strings.ReplaceAll(script, shownAddr, addr)
	out, err := exec.CommandContext(t.Context(), "sh", "-ec", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	order := regexp.MustCompile(`order 1: mug|"order_no":"[^"]+"`)
	got := order.FindAllString(string(out), -1)
	for _, o := range got {
		if o != got[0] {
			t.Errorf("two orders, %s and %s", got[0], o)
		}
	}
	created := strings.Count(string(out), "HTTP/1.1 201 Created")
	replayed := strings.Count(string(out), "Idempotent-Replayed: true")
	if len(got) != 3 || created != 3 || replayed != 2 {
		t.Errorf("%d answers with 201, %d with an order, %d replays; want 3, 3, 2:\n%s", created, len(got), replayed, out)
	}
}

// TestReadmeProgramShowsItsForm opens the first program's page, which a reader
// is told to click at, and refuses what has no token, as the README says.
func TestReadmeProgramShowsItsForm(t *testing.T) {
	for _, file := range readmes {
		addr := freeAddr(t)
		code := strings.ReplaceAll(programs(t, file)[0], shownAddr, addr)
		t.Setenv("SUBMIT_SECRET", strings.Repeat("s", 32))
		start(t, addr, "exec "+build(t, save(t, code)))
		for path, want := range map[string]string{
			"/": "data-submit-once", "/submitonce.js": "data-submit-once", "/submit-token": `"token"`,
		} {
			resp, err := http.Get("http://" + addr + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), want) {
				t.Errorf("%s: %s: %d, %v, want %s in\n%.200s", file, path, resp.StatusCode, err, want, body)
			}
		}
		resp, err := http.Post("http://"+addr+"/orders", "application/x-www-form-urlencoded", strings.NewReader("item=mug"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 400 {
			t.Errorf("%s: without a token: %d, want 400", file, resp.StatusCode)
		}
	}
}

// start runs a shell command that becomes a server, until the test ends.
func start(t *testing.T, addr, command string) {
	t.Helper()
	var out strings.Builder
	cmd := exec.Command("sh", "-ec", command)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { _ = cmd.Wait(); close(over) }()
	stop := func() { _ = cmd.Process.Kill(); <-over }
	t.Cleanup(stop)
	for range 1000 {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-over:
			t.Fatalf("%s has ended:\n%s", command, out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	stop()
	t.Fatalf("%s does not listen at %s:\n%s", command, addr, out.String())
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr())
}
