package storetest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/submitonce/submitonce/replay"
)

const (
	verbatim = "Responses come back byte for byte, whatever bytes they hold; a nil or empty response comes back empty."
	copying  = "A Store and its Holds are safe for concurrent use, and keep no reference to slices that they are given."
	anyKey   = "Key is 1 to [MaxKeyLen] bytes of printable ASCII (0x21 to 0x7E)."
)

var byteTests = []test{
	{
		name:    "responses come back byte for byte",
		promise: verbatim,
		run: func(t *trial) {
			all := make([]byte, 256)
			for i := range all {
				all[i] = byte(i)
			}
			for name, response := range map[string][]byte{
				"text":            []byte("HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n"),
				"all bytes":       all,
				"one NUL":         {0},
				"NUL at both end": []byte("\x00a\x00b\x00"),
				"invalid UTF-8":   []byte("\xff\xfe\xc3\x28\xed\xa0\x80"),
				"blanks":          []byte(" \t\r\n "),
				"a number":        []byte("0012"),
				"escapes":         []byte(`\x00\\'";--%s{}$1`),
				"unicode":         []byte("\ufeff\u2028早上好🙂"),
			} {
				k := key()
				if err := t.win(t.store, k, 1).Seal(t.Context(), response, retention); err != nil {
					t.Fatalf("seal with %s: %v", name, err)
				}
				t.wantDone(k, string(response))
			}
		},
	},
	{
		name:    "an empty response comes back empty",
		promise: verbatim,
		run: func(t *trial) {
			for _, response := range [][]byte{nil, {}} {
				k := key()
				if err := t.win(t.store, k, 1).Seal(t.Context(), response, retention); err != nil {
					t.Fatalf("seal with %#v: %v", response, err)
				}
				t.wantDone(k, "")
			}
		},
	},
	{
		name:    "a response of a mebibyte comes back whole",
		promise: verbatim,
		run: func(t *trial) {
			response := make([]byte, 1<<20+1)
			_, _ = rand.Read(response)
			k := key()
			if err := t.win(t.store, k, 1).Seal(t.Context(), response, retention); err != nil {
				t.Fatalf("seal: %v", err)
			}
			t.wantDone(k, string(response))
		},
	},
	{
		name:    "the caller's slice is not kept",
		promise: copying,
		run: func(t *trial) {
			k := key()
			response := []byte("as it was sealed")
			hold := t.win(t.store, k, 1)
			if err := hold.Seal(t.Context(), response, retention); err != nil {
				t.Fatalf("seal: %v", err)
			}
			clear(response)
			t.wantDone(k, "as it was sealed")
		},
	},
}

// printable is every byte that a key may hold.
func printable() string {
	var b strings.Builder
	for c := byte(0x21); c <= 0x7E; c++ {
		b.WriteByte(c)
	}
	return b.String()
}

var keyTests = []test{
	{
		name:    "keys of any printable ASCII stay apart",
		promise: anyKey,
		run: func(t *trial) {
			k := key()
			var keys []string
			for _, c := range printable() {
				keys = append(keys, k+string(c), string(c)+k)
			}
			t.keepApart(keys)
		},
	},
	{
		name:    "keys that look like patterns stay apart",
		promise: oneRecord,
		run: func(t *trial) {
			k := key()
			t.keepApart([]string{
				k, k + "*", k + "**", k + "?", k + "[a]", k + "%", k + "_", k + "%25", k + "\\", k + "\\\\",
				"{" + k + "}", "{" + k + "}:a", "{" + k + "}:b", k + ":{a}", k + ":{b}", "{}" + k, "}" + k + "{",
				k + ":", k + "::", k + ":lease", k + ":owner", k + "/", k + "/..", k + "'", k + `"`, k + "`", k + "$1", k + "#", k + "+",
			})
		},
	},
	{
		name:    "keys that differ by case or are the start of another stay apart",
		promise: oneRecord,
		run: func(t *trial) {
			k := "Storetest-" + rand.Text()
			t.keepApart([]string{
				k, strings.ToLower(k), strings.ToUpper(k), "s" + k[1:], k[:len(k)-1], k[:len(k)-2], k + "a", k + "A", k + "aa",
			})
		},
	},
	{
		name:    "keys of every length up to the longest stay apart",
		promise: anyKey,
		run: func(t *trial) {
			long := (key() + strings.Repeat(printable(), 3))[:replay.MaxKeyLen]
			other := []byte(long)
			other[len(other)-1] ^= 1
			t.keepApart([]string{long, long[:len(long)-1], long[:128], long[:127], long[:64], string(other)})
			// A key of one byte may be in use already, when stores share a database.
			k := printable()[rand.Text()[0]%94:][:1]
			rec, hold := t.claim(t.store, claimOf(k))
			if hold != nil {
				t.release(hold)
				t.wantFree(k)
			} else if rec.State == replay.Free {
				t.Errorf("key of one byte: %+v", brief(rec))
			}
		},
	},
}

// keepApart seals every key with a response of its own and reads all back.
func (t *trial) keepApart(keys []string) {
	t.Helper()
	for i, k := range keys {
		rec, hold := t.claim(t.store, claimOf(k))
		if hold == nil {
			t.Fatalf("key %q was not won: %+v", k, brief(rec))
		}
		t.seal(hold, fmt.Sprint("response ", i))
	}
	for i, k := range keys {
		want := fmt.Appendf(nil, "response %d", i)
		if rec := t.look(t.peer, k); rec.State != replay.Done || !bytes.Equal(rec.Response, want) {
			t.Errorf("look at %q: %+v, want done with %q", k, brief(rec), want)
		}
		if rec := t.lose(t.peer, k); !bytes.Equal(rec.Response, want) {
			t.Errorf("claim of %q: %+v, want done with %q", k, brief(rec), want)
		}
	}
}
