package browsertest

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
)

// startOrderform starts the example's shop, and returns it as one that tabs can
// be opened on.
func startOrderform(t *testing.T) *shop {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "orderform")
	build := exec.Command("go", "build", "-o", exe, "./examples/orderform")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	cmd := exec.Command(exe, "-addr", "127.0.0.1:0")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	open := regexp.MustCompile(`open on (http://[^ ]+)`)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := open.FindStringSubmatch(lines.Text()); m != nil {
			return &shop{t: t, url: m[1]}
		}
	}
	t.Fatalf("the shop did not open: %s", &errs)
	return nil
}

// Each button of the example sends what it says, and the page tells the truth
// about what came of it: the counts are the server's own.
func TestEachTroubleOfTheExampleComesToOneOrder(t *testing.T) {
	s := startOrderform(t)
	tests := []struct {
		id       string
		requests string // as the page counts them
		runs     string
		orders   string
		verdict  string // a part of it
	}{
		{"double", "2", "1", "1", "All 2 answers are equal, byte for byte: 201"},
		{"five", "5", "1", "1", "All 5 answers are equal, byte for byte: 201"},
		{"cut", "2", "1", "1", "It got the first answer: 201"},
		{"refresh", "2", "1", "1", "with the token that the browser client had kept: 201"},
		{"tab", "2", "1", "1", "Two tabs, one cart. All 2 answers are equal, byte for byte: 201"},
		{"slow", "4", "1", "1", "All 4 answers are equal, byte for byte: 201"},
		{"correct", "2", "2", "1", "Corrected and sent with the same token: 201"},
		{"mistake", "3", "3", "3", "3 orders. A page that draws a new token for each click protects nothing"},
	}
	b := s.open("/")
	b.wait(`document.querySelector("[data-trouble]:enabled")`)
	var all []string
	for _, tt := range tests {
		all = append(all, tt.id)
	}
	if got, want := b.text(`[...document.querySelectorAll("[data-trouble]")].map((b) => b.dataset.trouble)`), strings.Join(all, ","); got != want {
		t.Errorf("the page has the buttons %s, want %s", got, want)
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			b := (&shop{t: t, url: s.url}).open("/")
			b.wait(`document.querySelector("[data-trouble]:enabled")`)
			before := b.text(`document.querySelector("[data-order-count]").textContent`)
			b.eval(`document.querySelector("[data-trouble=` + tt.id + `]").click()`)
			b.wait(`document.querySelector("[data-verdict]").textContent`)
			if got := b.text(`document.querySelector("[data-verdict]").textContent`); !strings.Contains(got, tt.verdict) {
				t.Errorf("the page says %q, want %q in it", got, tt.verdict)
			}
			call(b, page.BringToFront, cdp.Empty{}) // from behind the second tab: a hidden page listens to nothing
			for name, want := range map[string]string{"requests": tt.requests, "runs": tt.runs, "orders": tt.orders} {
				b.wait(`document.querySelector("[data-count=` + name + `]").textContent === "` + want + `"`)
			}
			b.wait(`Number(document.querySelector("[data-order-count]").textContent) === ` + before + ` + ` + tt.orders)
		})
	}
}
