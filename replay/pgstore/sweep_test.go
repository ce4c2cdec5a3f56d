package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

func TestSweepRemovesOnlyWhatHasExpiredBatchByBatch(t *testing.T) {
	for what, c := range map[string]pgstore.Config{"plain": {}, "partitioned": {Partition: 24 * time.Hour}} {
		t.Run(what, func(t *testing.T) {
			pool := newPool(t, serverURL(t))
			c := newTable(t, pool, c)
			s := newStore(t, pool, c)
			for i := range 2500 {
				h := mustClaim(t, s, claimOf(fmt.Sprintf("k%d", i)))
				if err := h.Seal(t.Context(), make([]byte, 100), time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			mustClaim(t, s, claimOf("pending"))
			mustClaim(t, s, claimOf("abandoned"))
			mustClaim(t, s, claimOf("justabandoned"))
			for _, u := range []string{
				"expires_at = now() - interval '61 s' WHERE key = 'abandoned'",
				"expires_at = now() - interval '50 s' WHERE key = 'justabandoned'",
				"expires_at = now() WHERE state = 1 AND key < 'k5'",
			} {
				if _, err := pool.Exec(t.Context(), "UPDATE "+name(c)+" SET "+u); err != nil {
					t.Fatal(err)
				}
			}
			var expired, standing int
			count := "SELECT count(*) FILTER (WHERE key = 'abandoned' OR state = 1 AND expires_at <= now()), count(*) FROM " + name(c)
			if err := pool.QueryRow(t.Context(), count).Scan(&expired, &standing); err != nil {
				t.Fatal(err)
			}
			standing -= expired
			var batches []int
			for {
				n, err := s.Sweep(t.Context(), 1000)
				if err != nil {
					t.Fatal(err)
				}
				batches = append(batches, n)
				if n < 1000 {
					break
				}
			}
			total := 0
			for _, n := range batches {
				total += n
			}
			if total != expired || len(batches) != expired/1000+1 {
				t.Errorf("batches %v, want %d in all", batches, expired)
			}
			var left int
			if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+name(c)).Scan(&left); err != nil {
				t.Fatal(err)
			}
			if left != standing {
				t.Errorf("%d records left, want %d", left, standing)
			}
			if rec, err := s.Look(t.Context(), "pending"); err != nil || rec.State != replay.Pending {
				t.Errorf("pending: %+v, %v", rec, err)
			}
		})
	}
}
