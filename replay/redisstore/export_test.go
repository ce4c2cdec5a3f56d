package redisstore

// Wait waits for what New has started.
func (s *Store) Wait() { s.running.Wait() }

// AsBeforeRedis7 lets the store do what it finds out to be necessary on an older
// server.
func (s *Store) AsBeforeRedis7() {
	s.scripted.Store(true)
	s.unflagged.Store(true)
}
