package syncer

import (
	"sync"
	"time"

	"postern/spool"
)

// Status is the object that GET status shows as sync.
type Status struct {
	Enabled   bool `json:"enabled"`
	Connected bool `json:"connected"` // the last round worked
	// LagSeconds is the age of the oldest row that waits.
	LagSeconds   float64    `json:"lag_seconds"`
	RowsTotal    int64      `json:"rows_total"`    // written since the start
	RejectedRows int64      `json:"rejected_rows"` // set apart since the start
	LastSuccess  *time.Time `json:"last_success"`
	// Error says what is in the way and what to do; null while all is well.
	Error *string `json:"error"`
}

// meter counts for metrics and status.
type meter struct {
	mu       sync.Mutex // guards all below
	rows     int64
	rejected int64
	oldest   time.Time // of the rows that wait; zero: none
	success  time.Time
	failure  string // empty: the last round worked
}

// waiting notes the rows that wait, oldest first.
func (m *meter) waiting(rows []spool.OutboxRow, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(rows) == 0 {
		m.oldest = time.Time{}
		return
	}
	happened, known := happenedAt(rows[0])
	if !known && m.oldest.IsZero() {
		m.oldest = now
	} else if known {
		m.oldest = happened
	}
}

// happenedAt is when a row was written, as far as it shows: a person's intervention leaves no time.
func happenedAt(r spool.OutboxRow) (time.Time, bool) {
	switch {
	case r.Attempt != nil:
		return r.Attempt.StartedAt.Add(r.Attempt.Duration), true
	case r.Version == 1:
		return r.AcceptedAt, true
	}
	return time.Time{}, false
}

func (m *meter) wrote(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows += int64(n)
}

func (m *meter) reject() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rejected++
}

func (m *meter) fail(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure = text
}

func (m *meter) succeed(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure, m.success = "", now
}

func (m *meter) status(now time.Time) Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := Status{Enabled: true, Connected: !m.success.IsZero() && m.failure == "", RowsTotal: m.rows, RejectedRows: m.rejected}
	if !m.oldest.IsZero() {
		st.LagSeconds = max(now.Sub(m.oldest), 0).Seconds()
	}
	if !m.success.IsZero() {
		at := m.success.UTC()
		st.LastSuccess = &at
	}
	if m.failure != "" {
		text := m.failure
		st.Error = &text
	}
	return st
}

// Status tells how the syncer is.
func (s *Syncer) Status() Status { return s.meter.status(time.Now()) }
