package replay_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/replay"
)

func TestIdempotencyKeyHeader(t *testing.T) {
	tests := []struct {
		name   string
		values []string
		want   string
		err    error
	}{
		{"absent", nil, "", nil},
		{"quoted string of the draft", []string{`"8e03978e"`}, "8e03978e", nil},
		{"bare string means the same key", []string{`8e03978e`}, "8e03978e", nil},
		{"blanks around it", []string{`  "8e03978e" `}, "8e03978e", nil},
		{"escapes", []string{`"a\"b\\c"`}, `a"b\c`, nil},
		{"parameters mean nothing", []string{`"k";v=1;w="x,y"`}, "k", nil},
		{"braces, colons and stars", []string{`"{a}:*%0d%0a"`}, "{a}:*%0d%0a", nil},
		{"twice the same", []string{`"k"`, `k`}, "k", nil},
		{"joined by a proxy", []string{`"k", "k"`}, "k", nil},
		{"joined bare", []string{`k,k`}, "k", nil},
		{"a comma inside quotes is part of the key", []string{`"a,b"`}, "a,b", nil},
		{"empty value", []string{``}, "", nil},
		{"blanks are no key", []string{`   `}, "", nil},
		{"empty string", []string{`""`}, "", nil},
		{"string of blanks", []string{`"  "`}, "", nil},
		{"twice different", []string{`"k"`, `"l"`}, "", replay.ErrConflictingKeys},
		{"joined different", []string{`k, l`}, "", replay.ErrConflictingKeys},
		{"no closing quote", []string{`"k`}, "", replay.ErrMalformedKey},
		{"text behind the quote", []string{`"k"x`}, "", replay.ErrMalformedKey},
		{"bad escape", []string{`"a\n"`}, "", replay.ErrMalformedKey},
		{"NUL", []string{"k\x00"}, "", replay.ErrMalformedKey},
		{"newline", []string{"\"a\nb\""}, "", replay.ErrMalformedKey},
		{"emoji", []string{"k😀"}, "", replay.ErrMalformedKey},
		{"invalid UTF-8", []string{"\xff\xfe"}, "", replay.ErrMalformedKey},
		{"blank inside a bare key", []string{"a b"}, "", replay.ErrMalformedKey},
		{"1,024 bytes", []string{strings.Repeat("k", 1024)}, strings.Repeat("k", 1024), nil},
		{"1,025 bytes", []string{strings.Repeat("k", 1025)}, "", replay.ErrMalformedKey},
		{"10 kB", []string{strings.Repeat("k", 10_000)}, "", replay.ErrMalformedKey},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := replay.ParseIdempotencyKey(tt.values)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("key of %q = %q, %v; want %q, %v", tt.values, got, err, tt.want, tt.err)
			}
		})
	}
}

func FuzzIdempotencyKey(f *testing.F) {
	for _, s := range []string{`"8e03978e"`, `8e03978e`, `"a\"b", "a\"b";p="q,r"`, `""`, `"`, `\`, `;`, `,`, "k\x00", `"k";;,k`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, err := replay.ParseIdempotencyKey([]string{s})
		if err != nil {
			if key != "" {
				t.Errorf("key %q together with error %v", key, err)
			}
			return
		}
		if len(key) > replay.MaxIdempotencyKeyLen {
			t.Errorf("key of %d bytes accepted", len(key))
		}
		for i := range len(key) {
			if key[i] < ' ' || key[i] > '~' {
				t.Errorf("key %q holds byte %#x", key, key[i])
			}
		}
		if key == "" {
			return
		}
		// What was accepted is accepted in the draft's form, as the same key.
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		again, err := replay.ParseIdempotencyKey([]string{quoted})
		if again != key || err != nil {
			t.Errorf("key of %s = %q, %v; want %q", quoted, again, err, key)
		}
	})
}
