package pgstore

import (
	"bytes"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

func TestByteaReadsBothTextForms(t *testing.T) {
	for text, want := range map[string]string{
		`\x`: "", ``: "", `\x005c78ff`: "\x00\\x\xff", `a\\b`: `a\b`, `\000\377x`: "\x00\xffx", `\\x41`: `\x41`, `x`: "x",
	} {
		var b bytea
		if err := b.ScanText(pgtype.Text{String: text, Valid: true}); err != nil || string(b) != want || b == nil {
			t.Errorf("%q: %q, %v; want %q", text, b, err, want)
		}
	}
	for _, text := range []string{`\x0`, `\xzz`, `\`, `a\`, `\12`, `\999`, `\400`, `\a`} {
		var b bytea
		if err := b.ScanText(pgtype.Text{String: text, Valid: true}); err == nil {
			t.Errorf("%q: %q, want an error", text, b)
		}
	}
	b := bytea("old")
	if err := b.ScanText(pgtype.Text{}); err != nil || b != nil {
		t.Errorf("null: %q, %v", b, err)
	}
	src := []byte("driver's")
	if err := b.ScanBytes(src); err != nil || !bytes.Equal(b, src) || &b[0] == &src[0] {
		t.Errorf("binary: %q, %v; want a copy", b, err)
	}
}
