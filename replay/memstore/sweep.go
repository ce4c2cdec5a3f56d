package memstore

import "time"

// sweepEvery is how often a shard that holds records looks for expired ones.
// Each shard has its own timer, which starts with its first record, so that they
// do not all look at once.
const sweepEvery = 5 * time.Second

// arm starts the shard's timer if it stands. The caller holds mu.
func (s *Store) arm(sh *shard) {
	if sh.armed || s.closed.Load() {
		return
	}
	sh.armed = true
	if sh.sweep == nil {
		sh.sweep = time.AfterFunc(sweepEvery, func() { s.tick(sh) })
		return
	}
	sh.sweep.Reset(sweepEvery)
}

func (s *Store) tick(sh *shard) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.armed = false
	if s.closed.Load() {
		return
	}
	s.reclaim(sh, s.now())
	if len(sh.m) > 0 {
		s.arm(sh)
	}
}

// reclaim removes what has expired. Maps do not shrink, so one that has become
// mostly empty is made anew. The caller holds mu.
func (s *Store) reclaim(sh *shard, now time.Duration) {
	for key, e := range sh.m {
		if e.end <= now && (e.done || e.end+keepAbandoned <= now) {
			sh.remove(key, e)
		}
	}
	const worthWhile = 128
	if sh.peak > worthWhile && len(sh.m) < sh.peak/4 {
		m := make(map[string]*entry, len(sh.m))
		for key, e := range sh.m {
			m[key] = e
		}
		sh.m, sh.peak = m, len(m)
	}
}

// full reports whether there is no room for one more record, not even after
// reclaiming what has expired in this shard. A shard that has less than its even
// share needs not look at the others. The caller holds sh.mu.
func (s *Store) full(sh *shard, now time.Duration) bool {
	if sh.entries.Load() < int64(s.c.MaxEntries/shardCount) && sh.bytes.Load() < s.c.MaxBytes/shardCount {
		return false
	}
	if !s.over() {
		return false
	}
	s.reclaim(sh, now)
	return s.over()
}

func (s *Store) over() bool {
	var entries, bytes int64
	for i := range s.shards {
		entries += s.shards[i].entries.Load()
		bytes += s.shards[i].bytes.Load()
	}
	return entries >= int64(s.c.MaxEntries) || bytes >= s.c.MaxBytes
}

// Close drops all records and ends the store's timers. It waits for one that is
// at work, and may be called twice.
func (s *Store) Close() error {
	s.closed.Store(true)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		if sh.sweep != nil {
			sh.sweep.Stop()
		}
		sh.m, sh.watchers = nil, nil
		sh.entries.Store(0)
		sh.bytes.Store(0)
		sh.mu.Unlock()
	}
	return nil
}
