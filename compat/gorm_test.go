package compat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// Order and Line are models as anybody writes them.
type Order struct {
	ID        int64
	Item      string
	SubmitKey string
	Lines     []Line
}

type Line struct {
	ID      int64
	OrderID int64
	Text    string
}

// AfterCreate is a hook, which runs in the same transaction.
func (o *Order) AfterCreate(tx *gorm.DB) error {
	return tx.Create(&Line{OrderID: o.ID, Text: "by the hook"}).Error
}

// inGuard returns db, the one of the whole app, for the transaction of the handler
// whose context ctx is.
func inGuard(ctx context.Context, db *gorm.DB) *gorm.DB {
	tx := db.Session(&gorm.Session{NewDB: true, Context: ctx})
	tx.Statement.ConnPool = pgstore.SQL(ctx)
	return tx
}

func quiet() *gorm.Config { return &gorm.Config{Logger: logger.Discard, TranslateError: true} }

// openGORM opens the app's own *gorm.DB.
func (d *database) openGORM(c *gorm.Config) *gorm.DB {
	d.Helper()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: d.db}), c)
	if err != nil {
		d.Fatal(err)
	}
	return db
}

// openInGuard opens one for a single request.
func openInGuard(t *testing.T, ctx context.Context, pool gorm.ConnPool, c *gorm.Config) *gorm.DB {
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), c)
	if err != nil {
		t.Error(err)
	}
	return db.WithContext(ctx)
}

// gormWays are ways to GORM in the guard's transaction. To prepare statements is
// for the app's DB only: GORM keeps a goroutine for each DB that does.
var gormWays = map[string]func(t *testing.T, ctx context.Context, app *gorm.DB) *gorm.DB{
	"the app's DB": func(_ *testing.T, ctx context.Context, app *gorm.DB) *gorm.DB { return inGuard(ctx, app) },
	"the app's DB, which prepares statements": func(_ *testing.T, ctx context.Context, app *gorm.DB) *gorm.DB { return inGuard(ctx, app) },
	"opened for the request": func(t *testing.T, ctx context.Context, _ *gorm.DB) *gorm.DB {
		return openInGuard(t, ctx, pgstore.SQL(ctx), quiet())
	},
	"opened for the request without default transactions": func(t *testing.T, ctx context.Context, _ *gorm.DB) *gorm.DB {
		c := quiet()
		c.SkipDefaultTransaction = true
		return openInGuard(t, ctx, pgstore.SQL(ctx), c)
	},
}

// answerOrder answers with what the handler has come to.
func answerOrder(w http.ResponseWriter, n int64, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "order of run %d", n)
}

func TestGORMWritesCommitWithTheResponse(t *testing.T) {
	for way, open := range gormWays {
		t.Run(way, func(t *testing.T) {
			d := newDatabase(t)
			app := d.openGORM(quiet())
			if way == "the app's DB, which prepares statements" {
				c := quiet()
				c.PrepareStmt = true
				app = d.openGORM(c)
			}
			s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
				n := s.run()
				db := open(t, r.Context(), app)
				order := Order{Item: fmt.Sprint("tea ", n), SubmitKey: replay.Key(r.Context()), Lines: []Line{{Text: "a"}, {Text: "b"}}}
				err := db.Create(&order).Error
				d.count("orders", int(n)-1) // nobody else sees it yet
				var found []Order
				err = errors.Join(err, db.Preload("Lines").Where("item = ?", order.Item).Find(&found).Error)
				if len(found) != 1 || len(found[0].Lines) != 3 || found[0].ID != order.ID {
					t.Errorf("in the transaction: %+v, want the order with 3 lines", found)
				}
				err = errors.Join(err, db.Model(&Line{}).Where("order_id = ? AND text = ?", order.ID, "a").Update("text", "c").Error)
				err = errors.Join(err, db.Where("order_id = ? AND text = ?", order.ID, "b").Delete(&Line{}).Error)
				answerOrder(w, n, err)
			})
			s.runsOnce(request{path: "/orders"}, 201, "order of run %d")
			d.together(2)
			d.count("lines WHERE text IN ('c', 'by the hook')", 4)
			d.count("lines", 4)
		})
	}
}

func TestGORMFailedHandlerLeavesNothing(t *testing.T) {
	fails := map[string]struct {
		status int
		fail   func(w http.ResponseWriter)
	}{
		"refused fields": {422, func(w http.ResponseWriter) { w.WriteHeader(422) }},
		"error":          {500, func(w http.ResponseWriter) { w.WriteHeader(500) }},
		"panic":          {0, func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
	}
	for name, tt := range fails {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t)
			app := d.openGORM(quiet())
			s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
				n := s.run()
				err := inGuard(r.Context(), app).Create(&Order{Item: "tea", SubmitKey: replay.Key(r.Context())}).Error
				if n == 1 {
					tt.fail(w)
					return
				}
				answerOrder(w, n, err)
			})
			r := request{path: "/orders", token: s.token()}
			if a := s.send(r); a.status != tt.status {
				t.Errorf("answer is %d, %v; want %d", a.status, a.err, tt.status)
			}
			d.count("orders", 0)
			d.count("lines", 0)
			d.count("submitonce", 0)
			s.answers(r, 201, "order of run 2") // the same token runs again, at once
			if a := s.answers(r, 201, "order of run 2"); !a.replayed() {
				t.Error("the duplicate is not marked as a replay")
			}
			d.together(1)
		})
	}
}

func TestGORMCannotEndTheTransaction(t *testing.T) {
	d := newDatabase(t)
	app := d.openGORM(quiet())
	tries := map[string]struct {
		end  func(db *gorm.DB) error
		want error
	}{
		"Commit":        {func(db *gorm.DB) error { return db.Commit().Error }, pgstore.ErrNotYours},
		"Rollback":      {func(db *gorm.DB) error { return db.Rollback().Error }, pgstore.ErrNotYours},
		"Begin":         {func(db *gorm.DB) error { return db.Begin().Error }, gorm.ErrInvalidTransaction},
		"Exec COMMIT":   {func(db *gorm.DB) error { return db.Exec("COMMIT").Error }, pgstore.ErrNotYours},
		"Exec ROLLBACK": {func(db *gorm.DB) error { return db.Exec(" rollback ; ").Error }, pgstore.ErrNotYours},
		"Exec BEGIN":    {func(db *gorm.DB) error { return db.Exec("BEGIN").Error }, pgstore.ErrNotYours},
		"Raw END":       {func(db *gorm.DB) error { return db.Raw("END").Scan(new(int)).Error }, pgstore.ErrNotYours},
		"Row COMMIT":    {func(db *gorm.DB) error { return db.Raw("COMMIT").Row().Scan(new(int)) }, pgstore.ErrNotYours},
		"DB": {func(db *gorm.DB) error {
			_, err := db.DB()
			return err
		}, gorm.ErrInvalidDB},
		"Connection": {func(db *gorm.DB) error {
			return db.Connection(func(tx *gorm.DB) error { return tx.Exec("COMMIT").Error })
		}, gorm.ErrInvalidDB},
	}
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		n := s.run()
		db := inGuard(r.Context(), app)
		for name, try := range tries {
			if err := try.end(db.Session(&gorm.Session{})); !errors.Is(err, try.want) {
				t.Errorf("%s: %v, want %v", name, err, try.want)
			}
		}
		err := db.Create(&Order{Item: "tea", SubmitKey: replay.Key(r.Context())}).Error
		for name, try := range tries {
			if err := try.end(db.Session(&gorm.Session{})); !errors.Is(err, try.want) {
				t.Errorf("%s after a write: %v, want %v", name, err, try.want)
			}
		}
		d.count("orders", 0)
		if n == 1 {
			err = errors.Join(err, errors.New("changed my mind"))
		}
		answerOrder(w, n, err)
	})
	r := request{path: "/orders", token: s.token()}
	s.answers(r, 500, "changed my mind\n")
	d.count("orders", 0)
	s.answers(r, 201, "order of run 2")
	d.together(1)
}

func TestGORMNestedTransactionsAreSavepoints(t *testing.T) {
	d := newDatabase(t)
	d.exec("INSERT INTO orders (item, submit_key) VALUES ('the last cup', 'earlier')")
	app := d.openGORM(quiet())
	changed := errors.New("changed my mind")
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		n := s.run()
		db := inGuard(r.Context(), app)
		key := replay.Key(r.Context())
		err := db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&Order{Item: "tea", SubmitKey: key}).Error; err != nil {
				return err
			}
			// An error in here is undone alone, and the statement that failed has not
			// spoilt the whole.
			err := tx.Transaction(func(tx *gorm.DB) error {
				if err := tx.Create(&Order{Item: "milk", SubmitKey: key + " milk"}).Error; err != nil {
					return err
				}
				return tx.Create(&Order{Item: "the last cup", SubmitKey: key + " cup"}).Error
			})
			if !errors.Is(err, gorm.ErrDuplicatedKey) {
				t.Errorf("a unique item twice: %v, want ErrDuplicatedKey", err)
			}
			return tx.Transaction(func(tx *gorm.DB) error {
				return tx.Create(&Order{Item: "sugar", SubmitKey: key + " sugar"}).Error
			})
		})
		if e := db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&Order{Item: "salt", SubmitKey: key + " salt"}).Error, changed)
		}); !errors.Is(e, changed) {
			t.Errorf("transaction that returns an error: %v", e)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic got lost")
				}
			}()
			_ = db.Transaction(func(tx *gorm.DB) error {
				_ = tx.Create(&Order{Item: "pepper", SubmitKey: key + " pepper"})
				panic("a bug")
			})
		}()
		d.count("orders", 1)
		answerOrder(w, n, err)
	})
	r := request{path: "/orders", token: s.token()}
	s.answers(r, 201, "order of run 1")
	if a := s.answers(r, 201, "order of run 1"); !a.replayed() {
		t.Error("the duplicate is not marked as a replay")
	}
	d.count("orders WHERE item IN ('the last cup', 'tea', 'sugar')", 3)
	d.count("orders", 3)
	d.count("submitonce WHERE state = 1", 1)
}

// Savepoints by hand work as well as db.Transaction.
func TestGORMMakesSavepointsByHand(t *testing.T) {
	d := newDatabase(t)
	app := d.openGORM(quiet())
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		n := s.run()
		key := replay.Key(r.Context())
		db := inGuard(r.Context(), app)
		err := errors.Join(
			db.Create(&Order{Item: "tea", SubmitKey: key}).Error,
			db.SavePoint("before_milk").Error,
			db.Create(&Order{Item: "milk", SubmitKey: key + " milk"}).Error,
			db.RollbackTo("before_milk").Error,
		)
		answerOrder(w, n, err)
	})
	s.answers(request{path: "/orders"}, 201, "order of run 1")
	d.count("orders WHERE item = 'tea'", 1)
	d.count("orders", 1)
	d.count("submitonce WHERE state = 1", 1)
}

// PostgreSQL gives a transaction up after an error, whatever the handler makes of
// it; the guard does not let that pass for a success.
func TestGORMSwallowedErrorIsNoSuccess(t *testing.T) {
	d := newDatabase(t)
	d.exec("INSERT INTO orders (item, submit_key) VALUES ('the last cup', 'earlier')")
	app := d.openGORM(quiet())
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		n := s.run()
		db := inGuard(r.Context(), app)
		_ = db.Create(&Order{Item: "tea", SubmitKey: replay.Key(r.Context())})
		if n == 1 {
			_ = db.Create(&Order{Item: "the last cup", SubmitKey: "later"})
		}
		answerOrder(w, n, nil)
	})
	r := request{path: "/orders", token: s.token()}
	if a := s.send(r); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("answer is %d %v, want 503 with Retry-After", a.status, a.header)
	}
	d.count("orders", 1)
	d.count("submitonce", 0)
	s.answers(r, 201, "order of run 2")
	d.count("orders", 2)

	// Whoever expects the conflict says so in the statement.
	s = d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		n := s.run()
		tx := inGuard(r.Context(), app).Clauses(clause.OnConflict{DoNothing: true}).Omit(clause.Associations).
			Session(&gorm.Session{SkipHooks: true}).Create(&Order{Item: "the last cup", SubmitKey: "later"})
		answerOrder(w, n+tx.RowsAffected, tx.Error)
	})
	s.answers(request{path: "/orders"}, 201, "order of run 1")
	d.count("orders", 2)
}

// Two orders that each count all orders before they write can't both be right. One
// of them does not commit, and the guard runs its handler again.
func TestGORMConflictAtCommitRunsTheHandlerAgain(t *testing.T) {
	d := newDatabase(t)
	app := d.openGORM(quiet())
	var written sync.WaitGroup
	written.Add(2)
	s := d.shopWith(pgstore.TxConfig{IsoLevel: pgx.Serializable}, replay.Config{Reruns: 3}, func(s *shop, w http.ResponseWriter, r *http.Request) {
		n := s.run()
		db := inGuard(r.Context(), app)
		var orders int64
		err := db.Model(&Order{}).Count(&orders).Error
		err = errors.Join(err, db.Create(&Order{Item: fmt.Sprint("cup ", orders+1), SubmitKey: replay.Key(r.Context())}).Error)
		if n <= 2 {
			written.Done()
			written.Wait()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "cup ", orders+1)
	})
	d.exec("ALTER TABLE orders DROP CONSTRAINT orders_item_key") // or one would wait for the other
	answers := make(chan answer, 2)
	tokens := []string{s.token(), s.token()}
	for _, tok := range tokens {
		go func() { answers <- s.send(request{path: "/orders", token: tok}) }()
	}
	cups := map[string]int{}
	for range tokens {
		a := <-answers
		cups[fmt.Sprint(a.status, " ", a.body)]++
	}
	for _, tok := range tokens {
		a := s.send(request{path: "/orders", token: tok})
		if !a.replayed() {
			t.Error("the duplicate is not marked as a replay")
		}
		cups[fmt.Sprint(a.status, " ", a.body)]++
	}
	if cups["200 cup 1"] != 2 || cups["200 cup 2"] != 2 {
		t.Errorf("answers are %v, want each cup and its replay", cups)
	}
	s.ran(3)
	d.together(2)
	d.count("orders WHERE item IN ('cup 1', 'cup 2')", 2)
}

// Two orders that take from one row wait for each other, and at repeatable read
// the second hears of it from its statement. Its handler answers 500, which nobody
// sees, because the guard runs it again.
func TestGORMConflictAtAStatementRunsTheHandlerAgain(t *testing.T) {
	d := newDatabase(t)
	app := d.openGORM(quiet())
	d.exec("CREATE TABLE stock (cups int)")
	d.exec("INSERT INTO stock VALUES (2)")
	var begun sync.WaitGroup
	begun.Add(2)
	s := d.shopWith(pgstore.TxConfig{IsoLevel: pgx.RepeatableRead}, replay.Config{Reruns: 3}, func(s *shop, w http.ResponseWriter, r *http.Request) {
		if s.run() <= 2 { // both have their snapshot
			begun.Done()
			begun.Wait()
		}
		if err := inGuard(r.Context(), app).Exec("UPDATE stock SET cups = cups - 1").Error; err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	statuses := make(chan int, 2)
	for range 2 {
		tok := s.token()
		go func() { statuses <- s.send(request{path: "/orders", token: tok}).status }()
	}
	if one, other := <-statuses, <-statuses; one != 201 || other != 201 {
		t.Errorf("answers are %d and %d, want 201 twice", one, other)
	}
	s.ran(3)
	d.count("stock WHERE cups = 0", 1)
}

func TestGORMOfAnEndedTransactionOnlyFails(t *testing.T) {
	d := newDatabase(t)
	app := d.openGORM(quiet())
	kept := make(chan *gorm.DB, 1)
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		kept <- inGuard(context.WithoutCancel(r.Context()), app)
		answerOrder(w, s.run(), nil)
	})
	s.answers(request{path: "/orders"}, 201, "order of run 1")
	db := <-kept
	if err := db.Create(&Order{Item: "tea", SubmitKey: "late"}).Error; !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("after the response: %v, want ErrTxClosed", err)
	}
	db = inGuard(t.Context(), app)
	if err := db.Create(&Order{Item: "tea", SubmitKey: "late"}).Error; !errors.Is(err, pgstore.ErrNoTx) {
		t.Errorf("without a guard: %v, want ErrNoTx", err)
	}
	if err := db.Find(&[]Order{}).Error; !errors.Is(err, pgstore.ErrNoTx) {
		t.Errorf("without a guard: %v, want ErrNoTx", err)
	}
	d.count("orders", 0)
}

// The app's own DB inside a guarded handler is another transaction: it commits at
// once, and stays if the handler fails. This is the mistake to look out for.
func TestGORMOutsideOfTheGuardsTransactionIsNotUndone(t *testing.T) {
	d := newDatabase(t)
	app := d.openGORM(quiet())
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		s.run()
		err := app.WithContext(r.Context()).Create(&Order{Item: "tea", SubmitKey: replay.Key(r.Context())}).Error
		answerOrder(w, 1, errors.Join(err, errors.New("changed my mind")))
	})
	a := s.send(request{path: "/orders"})
	if a.status != 500 || !strings.Contains(a.body, "changed my mind") {
		t.Errorf("answer is %d %q", a.status, a.body)
	}
	d.count("orders", 1)
}
