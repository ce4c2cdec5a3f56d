package submitonce_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// deps returns what the packages compile, with themselves.
func deps(t *testing.T, packages ...string) []string {
	t.Helper()
	args := append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, packages...)
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatalf("go %v: %v", args, err)
	}
	return strings.Fields(string(out))
}

func TestNetHTTPWithMemoryCompilesNoThirdParty(t *testing.T) {
	for _, path := range deps(t, "./middleware/nethttp", "./replay/memstore", "./token") {
		if !strings.HasPrefix(path, "github.com/submitonce/submitonce/") {
			t.Errorf("it compiles %s", path)
		}
	}
}

func TestPackageTestingStaysOutOfPrograms(t *testing.T) {
	packages := []string{
		"./token", "./replay", "./replay/memstore", "./replay/redisstore", "./replay/pgstore",
		"./replay/sqlitestore", "./replay/tieredstore", "./middleware/nethttp", "./middleware/gin", "./middleware/echo",
		"./middleware/echo5",
	}
	args := append([]string{"list", "-deps"}, packages...)
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatalf("go %v: %v", args, err)
	}
	if slices.Contains(strings.Fields(string(out)), "testing") {
		t.Error("package testing is compiled into the users' programs")
	}
}

func TestTestOnlyModulesStayOutOfTheLibrary(t *testing.T) {
	for _, path := range deps(t, "./...") {
		for _, banned := range []string{"testify", "miniredis", "chromedp", "porcupine", "gofiber"} {
			if strings.Contains(path, banned) {
				t.Errorf("the library's module compiles %s", path)
			}
		}
	}
}
