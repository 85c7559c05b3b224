package spool

import (
	"errors"
	"fmt"
	"log/slog"

	bolt "go.etcd.io/bbolt"

	"postern/spool/internal/layout"
)

// errStale means that the rows of endpoints or the counters cannot be read: they are counted anew.
var errStale = errors.New("counts are damaged")

// load fills memory from the file.
func (s *Spool) load() error {
	err := s.store.view(s.loadFrom)
	if errors.Is(err, errStale) {
		if err = s.recount(err); err == nil {
			err = s.store.view(s.loadFrom)
		}
	}
	if err != nil {
		return fmt.Errorf("read the spool: %w", err)
	}
	return nil
}

// recount makes the counts anew, the note of keys among them, and says so.
func (s *Spool) recount(damage error) error {
	if err := s.notClean(); err != nil {
		return err
	}
	r, err := rebuild(s.store.update, false)
	if err == nil {
		err = s.dir.noteSeq(r.counters.nextSeq) // those of before may be too high for what is left
		s.cfg.Logger.Warn("counts of the spool were damaged: they were made anew from its records", slog.Any("damage", damage), slog.Int64("set_aside", r.aside))
	}
	return err
}

func (s *Spool) loadFrom(tx *bolt.Tx) error {
	meta := tx.Bucket(layout.Meta.Name())
	id, err := layout.Fields(layout.KindInstance, meta.Get(layout.KeyInstance))
	if err != nil {
		return fmt.Errorf("%w: the instance: %w", errStale, err)
	}
	s.instance = string(id)
	s.counters = counters{nextSeq: 1, nextEndpoint: 1, nextOutbox: 1}
	if first, _ := tx.Bucket(layout.Events.Name()).Cursor().First(); first != nil && meta.Get(layout.KeyCounters) == nil {
		return fmt.Errorf("%w: there are none", errStale)
	}
	if rec := meta.Get(layout.KeyCounters); rec != nil {
		if s.counters, err = decodeCounters(rec); err != nil {
			return fmt.Errorf("%w: %w", errStale, err)
		}
	}
	clear(s.rows)
	clear(s.names)
	s.total = endpointRow{}
	err = tx.Bucket(layout.Endpoints.Name()).ForEach(func(k, v []byte) error {
		row, err := decodeEndpoint(v)
		if err != nil {
			return fmt.Errorf("%w: %w", errStale, err)
		}
		s.setRow(string(k), row)
		return nil
	})
	s.minutes = minuteRing{}
	s.minutes.load(tx)
	return err
}
