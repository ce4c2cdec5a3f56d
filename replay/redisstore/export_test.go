package redisstore

// Wait waits for what New has started.
func (s *Store) Wait() { s.running.Wait() }
