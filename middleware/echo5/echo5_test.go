package submitecho5_test

import (
	"testing"

	"github.com/submitonce/submitonce/internal/adaptertest"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Echo5(), adaptertest.Stores{New: func(t *testing.T) replay.Store {
		store, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store
	}})
}
