package main

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
)

// An order is one that exists.
type order struct {
	No       string `json:"order_no"`
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
}

// A book keeps the orders. It holds at most one for each submit key: a handler
// that takes over from one that died half-way finds what that one wrote.
type book interface {
	// place writes o under a new number, and returns it as it stands. If key has
	// an order already, that one stands, and fresh is false.
	place(ctx context.Context, key string, o order) (standing order, fresh bool, err error)

	// find returns the order with the number no, or false.
	find(ctx context.Context, no string) (order, bool, error)

	// list returns all orders, the oldest first.
	list(ctx context.Context) ([]order, error)
}

// newNumber returns an order number such as OF-4K7Q2D9M. It is random, so that
// several shops can draw them side by side.
func newNumber() string { return "OF-" + rand.Text()[:8] }

// A memoryBook is a book that ends with the process.
type memoryBook struct {
	mu     sync.Mutex
	orders []order
	byKey  map[string]int // index of orders
	byNo   map[string]int
}

func newMemoryBook() *memoryBook {
	return &memoryBook{byKey: make(map[string]int), byNo: make(map[string]int)}
}

func (b *memoryBook) place(_ context.Context, key string, o order) (order, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i, ok := b.byKey[key]; ok {
		return b.orders[i], false, nil
	}
	o.No = newNumber()
	b.byKey[key], b.byNo[o.No] = len(b.orders), len(b.orders)
	b.orders = append(b.orders, o)
	return o, true, nil
}

func (b *memoryBook) find(_ context.Context, no string) (order, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.byNo[no]
	if !ok {
		return order{}, false, nil
	}
	return b.orders[i], true, nil
}

func (b *memoryBook) list(context.Context) ([]order, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.orders), nil
}
