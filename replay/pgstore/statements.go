package pgstore

import (
	"slices"
	"strings"
)

// endsTransaction recognises texts with statements that would, or would begin
// another. It is a help against mistakes; what gets around it is found out at the
// seal.
func endsTransaction(sql string) bool {
	for sql != "" {
		var first string
		first, sql = cutStatement(afterComments(sql))
		if endsIt(first) {
			return true
		}
		if sql != "" && createsAtomically(first) {
			return false // its body has semicolons, and an END that is none of ours
		}
	}
	return false
}

// createsAtomically recognises a function whose body is not a string.
func createsAtomically(statement string) bool {
	words := strings.Fields(strings.ToUpper(statement))
	return len(words) > 0 && words[0] == "CREATE" && slices.Contains(words, "ATOMIC")
}

// endsIt is endsTransaction for one statement, which begins with its first word.
func endsIt(sql string) bool {
	n := strings.IndexFunc(sql, func(r rune) bool { return (r|0x20) < 'a' || (r|0x20) > 'z' })
	if n < 0 {
		n = len(sql)
	}
	switch strings.ToUpper(sql[:n]) {
	case "BEGIN", "START", "COMMIT", "END", "ABORT":
		return true
	case "ROLLBACK": // TO SAVEPOINT
		return !strings.Contains(" "+strings.Join(strings.Fields(strings.ToUpper(sql[n:])), " ")+" ", " TO ")
	case "PREPARE":
		return strings.HasPrefix(strings.TrimSpace(strings.ToUpper(sql[n:])), "TRANSACTION")
	}
	return false
}

// afterComments drops what a statement may begin with that says nothing. Each
// query of sqlc begins with its name in a comment.
func afterComments(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v;")
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, _ = strings.Cut(sql, "\n")
		case strings.HasPrefix(sql, "/*"):
			sql = afterBlock(sql)
		default:
			return sql
		}
	}
}

// afterBlock drops a comment that may hold others (PostgreSQL's manual, section
// 4.1.5).
func afterBlock(sql string) string {
	depth := 0
	for i := 0; i+1 < len(sql); i++ {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return sql[i+1:]
			}
		}
	}
	return ""
}

// cutStatement cuts sql after its first statement. A semicolon ends it outside of
// strings, quoted names and comments (PostgreSQL's manual, section 4.1).
func cutStatement(sql string) (first, rest string) {
	if !strings.Contains(sql, ";") {
		return sql, ""
	}
	for i := 0; i < len(sql); {
		switch next := sql[i:]; {
		case next[0] == ';':
			return sql[:i], next[1:]
		case next[0] == '\'':
			escapes := i > 0 && sql[i-1]|0x20 == 'e' && (i == 1 || !isWord(sql[i-2]))
			i += quoted(next, escapes)
		case next[0] == '"':
			i += quoted(next, false)
		case strings.HasPrefix(next, "--"):
			line, _, _ := strings.Cut(next, "\n")
			i += len(line)
		case strings.HasPrefix(next, "/*"):
			i = len(sql) - len(afterBlock(next))
		case next[0] == '$' && (i == 0 || !isWord(sql[i-1])):
			i += dollarQuoted(next)
		default:
			i++
		}
	}
	return sql, ""
}

// quoted returns the length of what sql begins with in quotes. A doubled quote is
// two strings to it, which comes to the same.
func quoted(sql string, escapes bool) int {
	for i := 1; i < len(sql); i++ {
		switch {
		case sql[i] == sql[0]:
			return i + 1
		case escapes && sql[i] == '\\':
			i++
		}
	}
	return len(sql)
}

// dollarQuoted returns the length of what sql begins with between two tags like
// $body$, or 1 if its dollar begins none.
func dollarQuoted(sql string) int {
	n := strings.IndexByte(sql[1:], '$')
	if n < 0 || n > 0 && sql[1] >= '0' && sql[1] <= '9' || strings.ContainsFunc(sql[1:n+1], func(r rune) bool { return r < 0x80 && !isWord(byte(r)) }) {
		return 1
	}
	tag := sql[:n+2]
	end := strings.Index(sql[len(tag):], tag)
	if end < 0 {
		return len(sql)
	}
	return len(tag) + end + len(tag)
}

// isWord reports whether c may be part of a name.
func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
