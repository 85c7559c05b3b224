package spool

import "log/slog"

// After a change of keys the free pages of the file still have what was there before. A copy rids the spool of them, and
// is owed until one is in place (layout.KeyStale). It is made as soon as it fits beside the file: bbolt never makes that
// shorter, so of a small spool that was full once there would never be room for a copy and its reserve.

// want asks for a copy whatever the size. One that is in the making has read what is to be gone, and does not count.
func (c *compaction) want() {
	c.forced.Store(true)
	if c.current != nil {
		c.current.stale = true
	}
}

// makeWay finds room for a copy that is owed, where there is none within max_bytes for the file as it is. What the file has
// beyond its last page is given back, if what is free before that will do as the reserve; and the copy gets its own reserve
// only when it is in place. It returns the file's size, and what the copy takes beside it.
func (s *Spool) makeWay(file, room int64) (newFile, newRoom int64) {
	sp := s.store.space
	if file+room <= s.cfg.MaxBytes || sp.highWater+sp.used() > s.cfg.MaxBytes || sp.free/4*3 < s.room.reserve+s.owed() {
		return file, room
	}
	if sp.highWater < file {
		if err := s.store.file.Truncate(sp.highWater); err != nil {
			return file, room
		}
		s.store.allocated = sp.highWater
	}
	return s.store.allocated, sp.used()
}

// sayCopyWaits says once that the copy that is owed has no room.
func (s *Spool) sayCopyWaits() {
	if s.compaction.told {
		return
	}
	s.compaction.told = true
	s.cfg.Logger.Warn("free pages of the spool's file may still hold what was there before its keys were changed: the copy that is "+
		"rid of them has no room yet, and is made as soon as there is; to have it now, raise spool.max_bytes or free room on the disk and "+
		"restart, or run postern spool rekey while Postern is stopped", slog.Int64("file_bytes", s.store.allocated),
		slog.Int64("used_bytes", s.store.space.used()), slog.Int64("max_bytes", s.cfg.MaxBytes))
}

// copied notes that a copy took the file's place.
func (s *Spool) copied(c *compactor) {
	if s.compaction.forced.Load() && !c.stale {
		s.cfg.Logger.Info("the spool's file was copied: nothing is left in it of what was there before its keys were changed")
	}
	s.compaction.forced.Store(c.stale)
	s.compaction.told = false
}
