package redisstore

// Wait waits for what New has started.
func (s *Store) Wait() { s.running.Wait() }

// AsBeforeRedis7 lets the store do what it finds out to be necessary on an older
// server.
func (s *Store) AsBeforeRedis7() {
	s.scripted.Store(true)
	s.unflagged.Store(true)
	s.unequal.Store(true)
}

// ForgetFinished makes the store ask as if it had never seen key done.
func (s *Store) ForgetFinished(key string) { s.finished.remove(s.name(key)) }
