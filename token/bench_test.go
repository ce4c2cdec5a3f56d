package token_test

import "testing"

func BenchmarkVerify(b *testing.B) {
	iss := newIssuer(b, oneKey(b))
	value := iss.Issue("checkout", "session-4711").Value
	b.ReportAllocs()
	for b.Loop() {
		if _, err := iss.Verify(value, "checkout", "session-4711"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerifyParallel(b *testing.B) {
	iss := newIssuer(b, oneKey(b))
	value := iss.Issue("checkout", "session-4711").Value
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := iss.Verify(value, "checkout", "session-4711"); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkVerifyForged(b *testing.B) {
	iss := newIssuer(b, oneKey(b))
	value := iss.Issue("checkout", "session-4711").Value
	b.ReportAllocs()
	for b.Loop() {
		if _, err := iss.Verify(value, "checkout", "session-4712"); err == nil {
			b.Fatal("a foreign token was verified")
		}
	}
}

func BenchmarkIssue(b *testing.B) {
	iss := newIssuer(b, oneKey(b))
	b.ReportAllocs()
	for b.Loop() {
		iss.Issue("checkout", "session-4711")
	}
}

func BenchmarkIssueInstance(b *testing.B) {
	iss := newIssuer(b, oneKey(b))
	b.ReportAllocs()
	for b.Loop() {
		iss.IssueInstance("checkout", "session-4711", "cart-42")
	}
}
