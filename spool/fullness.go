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
	last     time.Time            // when something was refused, or would have been
	refusals int64                // of those before
	shares   map[string]time.Time // when an endpoint was last said to have used up its share
}

const (
	// shareSaidEvery is how often one endpoint's full share is said at most, and sharesSaid how many of them are remembered.
	shareSaidEvery = 10 * time.Minute
	sharesSaid     = 1000
)

// tellShareFull says whose events are refused although the spool has room.
func (s *Spool) tellShareFull(endpoint string, used, limit int64) {
	f, now := &s.fullness, time.Now()
	if last, ok := f.shares[endpoint]; ok && now.Sub(last) < shareSaidEvery {
		return
	}
	if f.shares == nil || len(f.shares) >= sharesSaid {
		f.shares = make(map[string]time.Time)
	}
	f.shares[endpoint] = now
	s.cfg.Logger.Warn("an endpoint has used up its share of the spool: its new events are refused until some of those that wait are delivered or dropped, and no other endpoint's",
		slog.String("endpoint", endpoint), slog.Int64("used_bytes", used), slog.Int64("share_bytes", limit))
}

// tellFull says once that events are refused for want of room, and once that they no longer are.
func (s *Spool) tellFull(now time.Time) {
	f, r := &s.fullness, s.room
	if r.refused > 0 || r.refusals > f.refusals {
		f.last, f.refusals = now, r.refusals
		if !f.told {
			f.told = true
			s.cfg.Logger.Warn("the spool is full: events that do not fit are refused until there is room, and deliveries go on",
				slog.String("cause", r.cause()), slog.Int64("used_bytes", r.space.used()), slog.Int64("max_bytes", r.bound))
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
	if err := s.room.fits(cost(size) + owedPending); err != nil {
		s.room.refuse(size, err)
	}
}

// cause says what is used up.
func (r *room) cause() string {
	if r.byDisk {
		return "the disk under spool.dir has no room"
	}
	return "spool.max_bytes is used up"
}
