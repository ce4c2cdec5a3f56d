package memstore_test

import (
	"context"
	"fmt"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

func Example() {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	once, err := replay.NewOnce(store, replay.OnceConfig{Name: "receipt"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		receipt, replayed, err := once.Do(context.Background(), "payment-17",
			func(context.Context) ([]byte, error) {
				fmt.Println("charging")
				return []byte("receipt 4711"), nil
			})
		fmt.Println(string(receipt), replayed, err)
	}
	// Output:
	// charging
	// receipt 4711 false <nil>
	// receipt 4711 true <nil>
	// receipt 4711 true <nil>
}

// What a store holds is worth a gauge: from 96 % of a bound on, it may refuse
// claims.
func ExampleStore_Size() {
	store, err := memstore.New(memstore.Config{MaxEntries: 50_000, MaxBytes: 64 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	records, bytes := store.Size()
	fmt.Println(records, bytes)
	// Output: 0 0
}
