package spool

import (
	"log/slog"
	"time"
)

// fullQuiet is how long nothing must have been refused for the spool to count as having room again: while a full one drains,
// room comes and goes with every delivery.
const fullQuiet = 10 * time.Second

// fullness is what was said about the room. It is the committer's.
type fullness struct {
	told     bool
	last     time.Time // when something was refused, or would have been
	refusals int64     // of those before
}

// tellFull says once that events are refused for want of room, and once that they no longer are.
func (s *Spool) tellFull(now time.Time) {
	f, r := &s.fullness, s.room
	if r.refused > 0 || r.refusals > f.refusals {
		f.last, f.refusals = now, r.refusals
		if !f.told {
			f.told = true
			s.cfg.Logger.Warn("the spool is full: events that do not fit are refused until there is room, and deliveries go on",
				slog.String("cause", r.cause()), slog.Int64("used_bytes", r.space.used()), slog.Int64("max_bytes", r.maxBytes))
		}
		return
	}
	if f.told && now.Sub(f.last) >= fullQuiet {
		f.told = false
		s.cfg.Logger.Info("the spool has room again")
	}
}

// foresee tells before the first acceptance whether there is room: a spool that was full before a restart is full after it,
// and whoever asks whether it is ready should not have to lose an event to learn that. What the next event will be like is
// unknown; those that wait are taken for its kin.
func (s *Spool) foresee() {
	var bytes int64
	for _, row := range s.rows {
		bytes += row.bytes
	}
	size := max(bytes/max(s.total.pending+s.total.failed+s.total.dead, 1), 1)
	s.room.begin()
	if s.room.fits(cost(size)+owedPending) != nil {
		s.room.refused = size
	}
}

// cause says what is used up.
func (r *room) cause() string {
	if !r.diskFullAt.IsZero() {
		return "the disk under spool.dir has no room"
	}
	return "spool.max_bytes is used up"
}
