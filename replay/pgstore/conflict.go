package pgstore

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A transaction that loses to another one mostly learns it from a statement, and
// the handler answers that with an error of its own. What the statements of a
// handler return is therefore noted, so that the guard can run it again.

// note remembers whether err, of one of the handler's statements, is a conflict
// with another transaction.
func (l *lentTx) note(err error) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code == "25P02" { // in_failed_sql_transaction only repeats that something was wrong
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conflict = nil
	if faultOf(err) == lostRace {
		l.conflict = err
	}
}

// lost returns the conflict that the transaction has lost, as far as the latest
// error of a statement tells.
func (l *lentTx) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conflict
}

// notedRows are rows whose error is noted.
type notedRows struct {
	pgx.Rows
	lent *lentTx
}

func (r notedRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.lent.note(r.Err())
	return false
}

func (r notedRows) Close() {
	r.Rows.Close()
	r.lent.note(r.Err())
}

// A notedRow is a row whose error is noted.
type notedRow struct {
	pgx.Row
	lent *lentTx
}

func (r notedRow) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	r.lent.note(err)
	return err
}

// notedResults are results whose errors are noted.
type notedResults struct {
	pgx.BatchResults
	lent *lentTx
}

func (r notedResults) Exec() (pgconn.CommandTag, error) {
	tag, err := r.BatchResults.Exec()
	r.lent.note(err)
	return tag, err
}

func (r notedResults) Query() (pgx.Rows, error) {
	rows, err := r.BatchResults.Query()
	r.lent.note(err)
	return notedRows{rows, r.lent}, err
}

func (r notedResults) QueryRow() pgx.Row { return notedRow{r.BatchResults.QueryRow(), r.lent} }

func (r notedResults) Close() error {
	err := r.BatchResults.Close()
	r.lent.note(err)
	return err
}
