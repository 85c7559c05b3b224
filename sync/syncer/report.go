package syncer

import (
	"context"
	"log/slog"
	"time"

	"postern/sync/pgstore"
)

// report sends a heartbeat and the health that has changed, and looks after the tables, each when it is time.
func (s *Syncer) report(ctx context.Context, now time.Time) error {
	if !now.Before(s.keepAt) {
		s.keepAt = now.Add(maintainEvery)
		s.maintain(ctx)
	}
	if s.parts.Snapshot == nil || now.Before(s.reportAt) {
		return nil
	}
	s.reportAt = now.Add(s.cfg.Interval)
	snap := s.parts.Snapshot()
	s.check.dropped = snap.Heartbeat.DroppedRows
	beat, err := s.heartbeat(ctx, snap.Heartbeat)
	if err != nil {
		return err
	}
	if beat.New {
		s.health = nil
		s.check.anew()
	}
	changed := s.changed(snap.Health, now)
	if len(changed) == 0 {
		return nil
	}
	if err := s.store.WriteHealth(ctx, changed); err != nil {
		return err
	}
	if s.health == nil {
		s.health = make(map[string]pgstore.Health)
	}
	for _, h := range changed {
		s.health[h.EndpointName] = h
	}
	return nil
}

// maintain looks after partitions and retention. Rows go on without it, since those that have no partition have a
// default one; so a failure, such as a table that somebody reads for long, is said and tried again in a minute.
func (s *Syncer) maintain(ctx context.Context) {
	if _, err := s.store.Maintain(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn("partitions and retention in Postgres were not looked after", slog.Any("error", err))
	}
}

// changed picks the endpoints whose health was not sent as it is; once in a while that is all of them.
func (s *Syncer) changed(list []pgstore.Health, now time.Time) (out []pgstore.Health) {
	if !now.Before(s.healthAt) {
		s.healthAt, s.health = now.Add(healthEvery), nil
	}
	for _, h := range list {
		if h.EndpointURL == "" {
			h.EndpointURL = s.endpoint(h.EndpointName).URL
		}
		// A time made of two clocks wanders by microseconds.
		h.OpenedAt = h.OpenedAt.Round(100 * time.Millisecond)
		if sent, ok := s.health[h.EndpointName]; !ok || !same(sent, h) {
			out = append(out, h)
		}
	}
	return out
}

func same(a, b pgstore.Health) bool {
	equal := a.OpenedAt.Equal(b.OpenedAt)
	a.OpenedAt, b.OpenedAt = time.Time{}, time.Time{}
	return equal && a == b
}

func (s *Syncer) heartbeat(ctx context.Context, h pgstore.Heartbeat) (pgstore.Beat, error) {
	st := s.meter.status(time.Now())
	h.Lag, h.RejectedRows = time.Duration(st.LagSeconds*float64(time.Second)), st.RejectedRows
	if h.StartedAt.IsZero() {
		h.StartedAt = s.started
	}
	return s.store.Heartbeat(ctx, h)
}

// goodbye sends the last health and heartbeat: from now on this instance does not count as one of the fleet.
func (s *Syncer) goodbye(ctx context.Context) {
	if s.parts.Snapshot == nil || ctx.Err() != nil {
		return
	}
	snap := s.parts.Snapshot()
	snap.Heartbeat.Stopping = true
	if err := s.store.WriteHealth(ctx, s.changed(snap.Health, time.Now())); err == nil {
		_, _ = s.heartbeat(ctx, snap.Heartbeat)
	}
}
