package storetest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/replay/storetest"
)

// uncheckable are the sentences of the comments that no case defends, with the
// reason.
var uncheckable = map[string]string{
	"Nobody changes the slices that they return: they may be the records themselves.": "a promise to stores, not of them",
	// What a word means.
	"A State says how far the record under a key has come.":                   "definition",
	"A Record is what stands under a key.":                                    "definition",
	"An Owner names one attempt of one request.":                              "definition",
	"A Claim asks for a key.":                                                 "definition",
	"A Hold is a won claim.":                                                  "definition",
	"A Watcher is a [Store] that can tell when a record changes.":             "definition",
	"A Sweeper is a [Store] that does not reclaim expired records by itself.": "definition",
	"A Store may also be a [Watcher] and a [Sweeper].":                        "definition",
	"LeaseLeft is how long the owner's lease still runs; when it has passed, another claim may take the key over.": "definition",
	"Package storetest checks every sentence of this.":                                                             "true",

	// What the caller does or leaves.
	"It is drawn at random by the caller, so that a claim whose answer was lost can be repeated.": "the caller's part",
	"Owner is who asks.": "the caller's part",
	"It decides nothing else: which requests share a key, what a response means and how long it is kept are the caller's business, and owners and responses are opaque.": "the caller's part",
	"A store that cannot is polled.":                                     "the caller's part",
	"A store may lose a message, so the caller polls behind it, slowly.": "the caller's part",

	"Time is measured by one clock, that of the place where the records are kept; methods therefore take durations, never instants, and the clocks of the callers do not matter.": "one process has one clock",

	// What a store may do.
	"It may receive more often, and may fold several changes into one.": "leave to do so",
	"It says nothing when a lease runs out; Record.LeaseLeft does.":     "leave to do so",

	// What only some stores have.
	"Release, too, returns ErrUndone where it knows that the handler has failed only by a conflict with another one; the hold has ended then.":                  "what is lent is the store's own",
	"A bounded store without room for one more record returns ErrStoreFull.":                                                                                    "the bound is the store's own",
	"It never makes room by dropping a record that has not expired.":                                                                                            "the bound is the store's own",
	"A Lender is a [Hold] that owns what the handler writes: the claim, the handler's own writes and the response take effect together at Seal, or not at all.": "what is lent is the store's own",
	"A database transaction is such a thing.":                                                                                                                   "what is lent is the store's own",
	"Where a Hold is a Lender, a failed Seal means that the handler's work may be undone, so the guard never sends its response then.":                          "what is lent is the store's own",
	"Seal returns [ErrUndone] when the work is undone for certain and may be tried again.":                                                                      "what is lent is the store's own",
	"Lend returns a context that carries what the hold lends to the handler.":                                                                                   "what is lent is the store's own",
}

// sentences returns what the comments of package replay say of stores.
func sentences(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../store.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return false
		case *ast.GenDecl:
			add(all, n.Doc)
		case *ast.ValueSpec:
			add(all, n.Doc)
		case *ast.Field:
			add(all, n.Doc)
		}
		return true
	})
	for s := range all {
		if strings.HasPrefix(s, "MaxKeyLen ") || strings.HasPrefix(s, "The guard and [Once] ") {
			delete(all, s)
		}
	}
	return all
}

var end = regexp.MustCompile(`\. +`)

func add(all map[string]bool, doc *ast.CommentGroup) {
	if doc == nil {
		return
	}
	for _, s := range split(doc.Text()) {
		all[s] = true
	}
}

// split returns the sentences of a text.
func split(text string) (all []string) {
	const dot = "c\x00Key" // is not the end of a sentence
	text = strings.Join(strings.Fields(text), " ")
	for s := range strings.SplitSeq(end.ReplaceAllString(strings.ReplaceAll(text, "c.Key", dot)+" ", ".\n"), "\n") {
		if s != "" {
			all = append(all, strings.ReplaceAll(s, dot, "c.Key"))
		}
	}
	return all
}

func TestEachCaseDefendsASentence(t *testing.T) {
	said := sentences(t)
	for name, promise := range storetest.Promises() {
		for _, s := range split(promise) {
			if !said[s] {
				t.Errorf("case %q: package replay does not say %q", name, s)
			}
		}
	}
}

func TestEachSentenceHasACase(t *testing.T) {
	defended := make(map[string]bool)
	for _, promise := range storetest.Promises() {
		for _, s := range split(promise) {
			defended[s] = true
		}
	}
	said := sentences(t)
	for s := range said {
		if !defended[s] && uncheckable[s] == "" {
			t.Errorf("no case defends %q", s)
		}
	}
	for s := range uncheckable {
		if !said[s] {
			t.Errorf("package replay does not say any more: %q", s)
		}
	}
}
