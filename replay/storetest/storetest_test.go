package storetest_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/storetest"
)

func TestARightStorePasses(t *testing.T) {
	t.Run("in process", func(t *testing.T) { storetest.Run(t, harness("")) })
	t.Run("with a peer", func(t *testing.T) { storetest.Run(t, distant("")) })
	t.Run("transactional", func(t *testing.T) {
		h := distant("")
		h.Transactional = true
		h.New = func(*testing.T) replay.Store {
			s := newShelf("")
			s.lends = true
			return s
		}
		storetest.Run(t, h)
	})
	t.Run("without what is optional", func(t *testing.T) {
		h := harness("")
		h.New = func(*testing.T) replay.Store { return struct{ replay.Store }{newShelf("")} }
		storetest.Run(t, h)
	})
}

func TestTheStoreOfTheExamplePasses(t *testing.T) { testDrawer(t) }

// faults are what a store can do wrong, and the cases that must find it.
var faults = map[string][]string{
	"leaves a goroutine":       {"close leaves nothing running"},
	"closes once":              {"close may be called twice"},
	"works when closed":        {"methods say that the store is closed", "close in the middle of calls ends them"},
	"close waits for watchers": {"close does not wait for waiters"},

	"checks, then claims": {
		"one of many claims wins", "one of many claims wins each of many keys", "nobody owns a key that another owns",
		"one of many takeovers wins", "one of many claims wins an expired record",
	},
	"checks, then seals":    {"seal and takeover at once have one winner", "one of many seals of a hold stands"},
	"checks, then extends":  {"extend and takeover at once have one winner"},
	"checks, then releases": {"release and takeover at once leave the successor alone", "seal and release of a hold at once have one winner"},

	"claims without a record":      {"a free key is won and stands pending"},
	"attempts from 0":              {"a free key is won and stands pending"},
	"one record for all":           {"keys do not touch each other"},
	"lost claims extend the lease": {"a lost claim changes nothing"},
	"refuses repeated claims":      {"a claim repeated by its owner wins again", "any hold of a repeated claim is the hold"},
	"owners win what they sealed":  {"an owner does not win what it has sealed"},
	"done records without attempt": {"a done record tells its attempt"},
	"done records with a lease":    {"a record tells what is so and nothing else"},
	"look claims":                  {"look claims nothing"},
	"look extends":                 {"look does not extend a lease", "look does not extend a retention"},
	"look finds the expired":       {"look tells how far a record has come"},

	"last seal stands":         {"a repeated seal keeps the first response"},
	"repeated seals are lost":  {"a repeated seal keeps the first response"},
	"retention from the claim": {"a seal is kept for its retention and counts from the seal"},
	"ignores retention":        {"a record that has expired counts as none", "each seal has a retention of its own"},
	"extends what is sealed":   {"a sealed hold has no lease to extend"},

	"release ends the lease only": {
		"a released key is won at once as attempt 1", "an owner may claim again what it has released", "attempts start again after a release",
	},
	"lets anyone release":     {"a repeated release does no harm", "a late release does not touch its successor"},
	"releases what is sealed": {"release leaves a sealed record alone"},

	"ignores leases":                 {"a lease that has run out is taken over and attempts count on", "each claim has a lease of its own"},
	"keeps the first lease":          {"each claim has a lease of its own"},
	"counts no attempts":             {"a lease that has run out is taken over and attempts count on"},
	"forgets abandoned claims":       {"an abandoned claim keeps its attempt for a minute"},
	"attempts outlive the retention": {"attempts start again after a retention"},
	"extends nothing":                {"extend keeps a claim alive"},
	"extend shortens":                {"extend never shortens a lease"},
	"extend revives nothing":         {"extend revives a lease that nobody took over"},
	"refuses late seals":             {"a late seal succeeds if nobody took over"},
	"seals for anyone": {
		"a late seal does not touch its successor", "a released hold can do nothing more",
		"an old hold does not touch a record that came after a release",
	},
	"extends for anyone": {"a late extend does not touch its successor"},

	"responses are text":       {"responses come back byte for byte"},
	"responses are cut":        {"a response of a mebibyte comes back whole"},
	"empty responses are none": {"an empty response comes back empty"},
	"keeps the caller's slice": {"the caller's slice is not kept"},
	"keys without case": {
		"keys that differ by case or are the start of another stay apart", "keys of any printable ASCII stay apart",
	},
	"keys cut at 127 bytes": {"keys of every length up to the longest stay apart"},
	"keys are patterns":     {"keys that look like patterns stay apart"},

	"does not heed contexts": {
		"a cancelled claim returns at once and may be repeated", "a cancelled look returns at once",
		"a cancelled seal returns at once and may be repeated", "a cancelled extend returns at once and may be repeated",
		"a cancelled release returns at once and may be repeated",
	},
	"takes a cancelled call for lost": {"a cancelled seal returns at once and may be repeated"},
	"cancelled calls keep their lane": {"calls that are cancelled halfway leave the store usable"},
	"cancelled watches hang":          {"a watch with a cancelled context returns at once"},

	"seals silently":          {"a seal wakes its watchers", "watching first and claiming then misses nothing"},
	"releases silently":       {"a release wakes its watchers", "watching first and claiming then misses nothing"},
	"wakes once":              {"one watch hears of one change after the other"},
	"wakes one":               {"all of many watchers are woken"},
	"watches begin late":      {"watching first and claiming then misses nothing"},
	"watching claims":         {"watching is not claiming"},
	"stop stops the last":     {"a watch may be stopped twice and stops no other"},
	"stop closes the channel": {"the channel of a watch is not closed"},

	"sweeps nothing":                  {"a sweep removes what has expired"},
	"sweeps beyond the limit":         {"a sweep keeps to its limit"},
	"sweeps claims at work":           {"a sweep leaves alone what has not expired"},
	"sweeps everything":               {"a sweep leaves alone what has not expired", "a sweep beside other calls removes nothing alive"},
	"sweeps abandoned claims at once": {"a sweep leaves an abandoned claim for a minute"},

	// With a peer, and out of the bubble.
	"keeps records to itself": {"a sealed response stands for everyone"},
}

// faultToPlay is how TestAWrongStoreFails tells its child what it is.
const faultToPlay = "STORETEST_FAULT"

// The suite runs on a store with the fault in a process of its own, because it
// has to fail there.
func TestAWrongStoreFails(t *testing.T) {
	if fault := os.Getenv(faultToPlay); fault != "" {
		h := harness(fault)
		if fault == "keeps records to itself" {
			h = distant(fault)
		}
		storetest.Run(t, h)
		return
	}
	for fault, cases := range faults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			for _, name := range cases { // one by one: some faults end their process
				out := play(t, fault, name)
				if !failedCase(out, name) {
					t.Errorf("the case %q did not fail:\n%s", name, out)
				}
			}
		})
	}
}

// play runs one case on a store with the fault and returns what it prints.
func play(t *testing.T, fault, name string) string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0],
		"-test.run=^TestAWrongStoreFails$/^"+regexp.QuoteMeta(subtest(name))+"$", "-test.v", "-test.timeout=60s")
	child.Env = append(os.Environ(), faultToPlay+"="+fault)
	out, err := child.CombinedOutput()
	if err == nil {
		t.Errorf("the suite found nothing wrong with a store that has the fault %q", fault)
	}
	return string(out)
}

// subtest is how package testing writes a name.
func subtest(name string) string { return strings.ReplaceAll(name, " ", "_") }

func failedCase(out, name string) bool {
	return strings.Contains(out, "--- FAIL: TestAWrongStoreFails/"+subtest(name)+" (")
}

func TestABrokenPromiseIsPrinted(t *testing.T) {
	out := play(t, "last seal stands", "a repeated seal keeps the first response")
	const want = "package replay promises: Repeating a Seal that had its effect succeeds and keeps the first response."
	if !strings.Contains(out, want) {
		t.Errorf("the output does not say %q:\n%s", want, out)
	}
}

func TestEveryCaseCanFail(t *testing.T) {
	all := storetest.Promises()
	found := make(map[string]bool)
	for fault, cases := range faults {
		for _, name := range cases {
			if _, ok := all[name]; !ok {
				t.Errorf("fault %q: there is no case %q", fault, name)
			}
			found[name] = true
		}
	}
	var never []string
	for name := range all {
		if !found[name] {
			never = append(never, name)
		}
	}
	slices.Sort(never)
	for _, name := range never {
		t.Errorf("no faulty store shows that this case can fail: %s", name)
	}
}
