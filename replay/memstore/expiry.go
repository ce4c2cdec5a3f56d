package memstore

import (
	"math"
	"time"
)

const (
	// keepAbandoned is how long a claim is kept after its lease, for its attempt.
	keepAbandoned = time.Minute

	// sweepPause is how long after their end records are removed, at the earliest,
	// so that those that end together are removed together. The shards do it one
	// after the other within as long again.
	sweepPause = time.Second

	// sweepBatch is how many records are removed under one lock, and batchPause
	// what the others have between two batches.
	sweepBatch = 128
	batchPause = time.Millisecond

	never = time.Duration(math.MaxInt64)
)

// due is when the entry may be removed.
func (e *entry) due() time.Duration {
	if e.done {
		return e.end
	}
	return e.end + keepAbandoned
}

// wakeUp sets the timer for the entry that is due first. mu is held.
func (sh *shard) wakeUp(now time.Duration) {
	due := min(sh.claims.first(), sh.seals.first())
	if due == never {
		return // the timer may go off once more
	}
	sh.wakeUpAt(now, max(due, now+sweepPause)+sh.late)
}

// wakeUpAt sets the timer, unless it goes off before at. mu is held.
func (sh *shard) wakeUpAt(now, at time.Duration) {
	if sh.alarm <= at {
		return
	}
	sh.alarm = at
	if sh.timer == nil {
		sh.store.ticks.Add(1)
		sh.timer = time.AfterFunc(at-now, sh.tick)
	} else if !sh.timer.Reset(at - now) { // it was not set, or is at work
		sh.store.ticks.Add(1)
	}
}

// tick is what the timer does.
func (sh *shard) tick() {
	defer sh.store.ticks.Done()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return
	}
	now := sh.store.now()
	sh.alarm = never
	if sh.sweep(now, sweepBatch) == sweepBatch {
		sh.wakeUpAt(now, now+batchPause)
	} else {
		sh.wakeUp(now)
	}
}

// sweep removes up to limit entries that are due and returns how many it has
// removed. mu is held.
func (sh *shard) sweep(now time.Duration, limit int) (removed int) {
	for ; removed < limit; removed++ {
		switch {
		case sh.claims.first() <= now:
			sh.remove(sh.claims[0].entry)
		case sh.seals.first() <= now:
			sh.remove(sh.seals[0].entry)
		default:
			limit = removed // that is all
			continue
		}
	}
	if removed > 0 {
		sh.shrink()
	}
	return removed
}

// A queue is a binary heap of entries, with the one that is due first in front.
// It has the ends beside the pointers, so that comparing them does not fetch the
// entries. Most leases are equal, and so are most retentions, so that what comes
// last is due last and stays where it is pushed; this is why claims and seals
// have a queue each.
type queue []item

type item struct {
	due   time.Duration
	entry *entry
}

// first returns when the first entry is due.
func (q queue) first() time.Duration {
	if len(q) == 0 {
		return never
	}
	return q[0].due
}

func (q *queue) push(e *entry) {
	*q = append(*q, item{})
	q.up(len(*q)-1, item{e.due(), e})
}

// remove takes e out.
func (q *queue) remove(e *entry) {
	var (
		i    = int(e.place)
		last = len(*q) - 1
		move = (*q)[last]
	)
	(*q)[last] = item{}
	*q = (*q)[:last]
	e.place = out
	if i < last {
		q.place(i, move)
	}
}

// fix moves e to where its end belongs, after it has changed.
func (q *queue) fix(e *entry) { q.place(int(e.place), item{e.due(), e}) }

// place puts it near i, where there is a gap.
func (q *queue) place(i int, it item) {
	if i > 0 && it.due < (*q)[(i-1)/2].due {
		q.up(i, it)
	} else {
		q.down(i, it)
	}
}

func (q *queue) up(i int, it item) {
	for i > 0 {
		parent := (i - 1) / 2
		if (*q)[parent].due <= it.due {
			break
		}
		q.set(i, (*q)[parent])
		i = parent
	}
	q.set(i, it)
}

func (q *queue) down(i int, it item) {
	for {
		child := 2*i + 1
		if child >= len(*q) {
			break
		}
		if next := child + 1; next < len(*q) && (*q)[next].due < (*q)[child].due {
			child = next
		}
		if it.due <= (*q)[child].due {
			break
		}
		q.set(i, (*q)[child])
		i = child
	}
	q.set(i, it)
}

func (q *queue) set(i int, it item) {
	(*q)[i] = it
	it.entry.place = int32(i)
}
