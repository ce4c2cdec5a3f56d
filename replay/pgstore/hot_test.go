package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay/pgstore"
)

func TestSealIsAHeapOnlyUpdate(t *testing.T) {
	pool := newPool(t, serverURL(t), conns(1))
	c := newTable(t, pool, pgstore.Config{})
	s := newStore(t, pool, c)
	const submits = 300
	for i := range submits {
		h := mustClaim(t, s, claimOf(fmt.Sprintf("k%d", i)))
		if err := h.Seal(t.Context(), make([]byte, 300), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	var updates, heapOnly int
	eventually(t, "the server's statistics show the updates", func() bool {
		err := pool.QueryRow(t.Context(), "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = $1::text", c.Table).
			Scan(&updates, &heapOnly)
		return err == nil && updates == submits
	})
	if heapOnly < submits*9/10 {
		t.Errorf("%d of %d seals were heap-only, want nine of ten", heapOnly, updates)
	}
}
