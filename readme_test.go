package submitonce_test

import (
	"bufio"
	"context"
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

func TestReadmeProgramsCompile(t *testing.T) {
	for _, file := range readmes {
		programs := 0
		for i, code := range blocks(t, file, "go") {
			if !strings.HasPrefix(code, "package main\n") {
				continue
			}
			programs++
			dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			main := filepath.Join(dir, "main.go")
			if err := os.WriteFile(main, []byte(code), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), "go", "vet", main).CombinedOutput()
			if err != nil {
				t.Errorf("%s: program %d: %v\n%s", file, i, err, out)
			}
		}
		if programs == 0 {
			t.Errorf("%s shows no program", file)
		}
	}
}

// TestReadmeCommands runs each shell block of the README as a reader would: the
// shop in one terminal, the rest in another.
func TestReadmeCommands(t *testing.T) {
	for _, file := range readmes {
		t.Run(file, func(t *testing.T) {
			var shop string
			for _, block := range blocks(t, file, "sh") {
				if strings.HasPrefix(block, "go run ./examples/orderform") {
					shop = startShop(t, strings.Fields(block))
					continue
				}
				if shop == "" {
					t.Fatal("the README uses the shop before it is started")
				}
				script := strings.ReplaceAll(block, "127.0.0.1:8080", shop)
				out, err := exec.CommandContext(t.Context(), "sh", "-ec", script).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s\n%s", err, script, out)
				}
				if got := strings.Count(string(out), "HTTP/1.1 201 Created"); got != 3 {
					t.Errorf("%d answers with 201, want 3:\n%s", got, out)
				}
				if got := strings.Count(string(out), "Idempotent-Replayed: true"); got != 2 {
					t.Errorf("%d replays, want 2:\n%s", got, out)
				}
			}
			if orders := ordersAt(t, shop); strings.Count(orders, "order_no") != 1 {
				t.Errorf("orders %s, want one", orders)
			}
		})
	}
}

func ordersAt(t *testing.T, addr string) string {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// startShop runs the README's own command on a free port, and returns where the
// shop listens.
func startShop(t *testing.T, command []string) string {
	t.Helper()
	addr := freeAddr(t)
	ctx, cancel := context.WithCancel(context.Background())
	binary := filepath.Join(t.TempDir(), "orderform")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, command[2]).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, binary, append(command[3:], "-addr", addr)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
		}
	}()
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return addr
		}
	}
	t.Fatal("the shop does not listen")
	return ""
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
