package memstore

import (
	"fmt"
	"testing"
)

// Nobody can make keys of one hash, so the table is told that they are.
func TestEntriesOfOneHashAreKeptApart(t *testing.T) {
	const keys = 3
	for _, order := range [][keys]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint("removed in the order ", order), func(t *testing.T) {
			const hash = 7
			tab := make(table)
			var entries [keys]*entry
			for i := range entries {
				entries[i] = &entry{key: fmt.Sprint("key-", i)}
				tab.add(hash, entries[i])
			}
			if e := tab.find(hash, "another"); e != nil {
				t.Errorf("find of a key that is not there: %q, want none", e.key)
			}
			gone := map[int]bool{}
			for _, i := range order {
				tab.remove(hash, entries[i])
				gone[i] = true
				for j, e := range entries {
					found := tab.find(hash, e.key)
					switch {
					case gone[j] && found != nil:
						t.Errorf("%s is found after it was removed", e.key)
					case !gone[j] && found != e:
						t.Errorf("%s is not found after %s was removed", e.key, entries[i].key)
					}
				}
			}
			if len(tab) != 0 {
				t.Errorf("an empty table has %d hashes", len(tab))
			}
		})
	}
}
