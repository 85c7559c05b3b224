package spool

// Writable tells whether the disk takes commits. While it does not, nothing new may be sent: what came of it could not
// be written down.
func (s *Spool) Writable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writable
}
