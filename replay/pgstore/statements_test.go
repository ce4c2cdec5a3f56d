package pgstore

import "testing"

func TestStatementsThatEndTheTransactionAreFoundInAText(t *testing.T) {
	for sql, want := range map[string]bool{
		"COMMIT":                                     true,
		"SELECT 1; COMMIT":                           true,
		"SELECT 1;-- done\n/* now */ commit;":        true,
		"SELECT 1;;\n;END":                           true,
		"SELECT 'it''s; '; rollback":                 true,
		`SELECT E'\'; '; ROLLBACK`:                   true,
		`SELECT '\'; COMMIT`:                         true, // no escape without the E
		`SELECT E'\'; COMMIT`:                        false,
		`SELECT "a;""b"; BEGIN`:                      true,
		"SELECT $$;$$; abort":                        true,
		"SELECT $a$;$$; COMMIT;$a$; SELECT 1":        false,
		"SELECT $1; COMMIT":                          true,
		"SELECT a$b$; COMMIT; SELECT a$b$":           true, // a name
		"SELECT 1 /* ; COMMIT */; SELECT 2":          false,
		"SELECT 1 -- ; COMMIT":                       false,
		"SELECT 1 -- it's\n; COMMIT":                 true,
		"SELECT '; COMMIT'":                          false,
		`SELECT "; COMMIT"`:                          false,
		"SELECT '; COMMIT":                           false, // unfinished: the server refuses it
		"SAVEPOINT a; ROLLBACK TO a; RELEASE a":      false,
		"ROLLBACK; SELECT ' TO '":                    true,
		"SELECT 1; PREPARE TRANSACTION 'a'":          true,
		"SELECT 1; PREPARE a AS SELECT 1":            false,
		"INSERT INTO commit VALUES (1); SELECT 1;":   false,
		"DO $$ BEGIN PERFORM 1; END $$; SELECT 1":    false,
		"SELECT CASE WHEN true THEN 1 END; SELECT 2": false,
		"CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END; SELECT 1": false,
		"SELECT 1;": false, ";": false, "": false, "$": false, "/*": false, "'": false, "SELECT $x": false,
	} {
		if got := endsTransaction(sql); got != want {
			t.Errorf("%q: %t, want %t", sql, got, want)
		}
	}
}

func BenchmarkEndsTransaction(b *testing.B) {
	const sql = "-- name: PlaceOrder :exec\nINSERT INTO orders (id, item, note, placed_at) VALUES ($1, $2, 'none', now()) RETURNING id"
	for b.Loop() {
		endsTransaction(sql)
	}
}
