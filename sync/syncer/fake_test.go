package syncer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"postern/spool"
	"postern/sync/pgstore"
)

// fakeOutbox is an outbox in memory.
type fakeOutbox struct {
	mu      sync.Mutex
	rows    []spool.OutboxRow
	last    uint64 // index that was given
	refused map[string]string
	err     error
	small   int           // where not 0, no batch has more rows: their bodies are big
	stuck   chan struct{} // OutboxDone waits for it where not nil
}

func (f *fakeOutbox) add(ids ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		f.last++
		f.rows = append(f.rows, spool.OutboxRow{Index: f.last, EventID: id, Version: 1, Endpoint: "https://a.example", State: spool.StatePending, AcceptedAt: time.Now()})
	}
}

func (f *fakeOutbox) Outbox(limit int) (rows []spool.OutboxRow, more bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.small > 0 {
		limit = min(limit, f.small)
	}
	return slices.Clone(f.rows[:min(limit, len(f.rows))]), limit < len(f.rows), f.err
}

func (f *fakeOutbox) OutboxDone(upTo uint64) error {
	if f.stuck != nil {
		<-f.stuck
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = slices.DeleteFunc(f.rows, func(r spool.OutboxRow) bool { return r.Index <= upTo })
	return nil
}

// drop loses the n oldest rows, as a spool does that has no room for them.
func (f *fakeOutbox) drop(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = f.rows[n:]
}

func (f *fakeOutbox) OutboxRefuse(index uint64, cause string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused == nil {
		f.refused = make(map[string]string)
	}
	f.rows = slices.DeleteFunc(f.rows, func(r spool.OutboxRow) bool {
		if r.Index == index {
			f.refused[r.EventID] = cause
		}
		return r.Index == index
	})
	return nil
}

func (f *fakeOutbox) left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.rows)
}

// tally is what a fake store has seen.
type tally struct {
	got      []string
	writes   int
	migrated int
	closed   int
	health   [][]pgstore.Health
	beats    []pgstore.Heartbeat
	kept     int

	compared  int
	looked    int // pages of what may not be known
	corrected []pgstore.Row
}

// fakeStore is a store in memory that can be made to fail.
type fakeStore struct {
	mu sync.Mutex
	tally
	undelivered []pgstore.Undelivered // in order of event ID
	known       map[string]uint64     // versions, for Unknown
	// fail decides about every call; nil: all is well.
	fail   func(call string, rows []pgstore.Row) error
	forgot bool // the instance; until its next heartbeat
	// hole swallows calls until their context ends.
	hole bool
}

var (
	errAway  = errors.New("away")
	errData  = &pgconn.PgError{Code: "23514", Message: "violates a check"}
	errSetup = &pgconn.PgError{Code: "42P01", Message: "no such table"}
)

func (f *fakeStore) call(ctx context.Context, name string, rows []pgstore.Row) error {
	f.mu.Lock()
	hole, fail := f.hole, f.fail
	f.mu.Unlock()
	if hole {
		<-ctx.Done()
		return ctx.Err()
	}
	if fail != nil {
		return fail(name, rows)
	}
	return nil
}

// seen is what the store has seen so far.
func (f *fakeStore) seen() tally {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tally
}

// apart is what was refused so far.
func (f *fakeOutbox) apart() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.refused)
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (f *fakeStore) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeStore) Migrate(ctx context.Context) error {
	if err := f.call(ctx, "migrate", nil); err != nil {
		return err
	}
	f.set(func() { f.migrated++ })
	return nil
}

func (f *fakeStore) Write(ctx context.Context, rows []pgstore.Row) error {
	f.set(func() { f.writes++ })
	if err := f.call(ctx, "write", rows); err != nil {
		return err
	}
	f.set(func() {
		for _, r := range rows {
			f.got = append(f.got, r.EventID)
		}
	})
	return nil
}

func (f *fakeStore) Heartbeat(ctx context.Context, h pgstore.Heartbeat) (beat pgstore.Beat, err error) {
	if err := f.call(ctx, "heartbeat", nil); err != nil {
		return beat, err
	}
	f.set(func() {
		f.beats = append(f.beats, h)
		beat.New, f.forgot = f.forgot, false
	})
	return beat, nil
}

func (f *fakeStore) WriteHealth(ctx context.Context, list []pgstore.Health) error {
	if err := f.call(ctx, "health", nil); err != nil {
		return err
	}
	f.set(func() { f.health = append(f.health, slices.Clone(list)) })
	return nil
}

func (f *fakeStore) Maintain(ctx context.Context) (bool, error) {
	if err := f.call(ctx, "maintain", nil); err != nil {
		return false, err
	}
	f.set(func() { f.kept++ })
	return true, nil
}

func (f *fakeStore) Undelivered(ctx context.Context, after pgstore.Undelivered, limit int) (list []pgstore.Undelivered, err error) {
	if err := f.call(ctx, "undelivered", nil); err != nil {
		return nil, err
	}
	f.set(func() {
		f.compared++
		for _, u := range f.undelivered {
			if u.EventID > after.EventID && len(list) < limit {
				list = append(list, u)
			}
		}
	})
	return list, nil
}

func (f *fakeStore) Correct(ctx context.Context, rows []pgstore.Row) error {
	if err := f.call(ctx, "correct", rows); err != nil {
		return err
	}
	f.set(func() { f.corrected = append(f.corrected, rows...) })
	return nil
}

func (f *fakeStore) Unknown(ctx context.Context, rows []pgstore.Row) (places []int, err error) {
	if err := f.call(ctx, "unknown", rows); err != nil {
		return nil, err
	}
	f.set(func() {
		f.looked++
		for i, r := range rows {
			if f.known[r.EventID] < r.Version {
				places = append(places, i)
			}
		}
	})
	return places, nil
}

func (f *fakeStore) Close() { f.set(func() { f.closed++ }) }

// written is what arrived, in order.
func (f *fakeStore) written() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.got, " ")
}

// poisoned refuses every batch with one of those events in it.
func poisoned(ids ...string) func(string, []pgstore.Row) error {
	return func(_ string, rows []pgstore.Row) error {
		for _, r := range rows {
			if slices.Contains(ids, r.EventID) {
				return fmt.Errorf("write a batch: %w", errData)
			}
		}
		return nil
	}
}
