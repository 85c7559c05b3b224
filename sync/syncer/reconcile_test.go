package syncer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"postern/spool"
	"postern/sync/pgstore"
)

// views are the events that a spool knows.
type views map[string]spool.View

func (v views) Get(id string, payload bool) (spool.View, error) {
	view, ok := v[id]
	switch {
	case payload:
		return spool.View{}, errors.New("payloads were not asked for")
	case !ok:
		return spool.View{}, spool.ErrNotFound
	case view.State == 0:
		return spool.View{}, errors.New("the record is damaged")
	}
	return view, nil
}

func (v views) Standing(uint64, int) ([]spool.OutboxRow, uint64, error) { return nil, 0, nil }

// standing are events that wait, numbered from 1 on.
type standing struct {
	views
	rows []spool.OutboxRow
}

func (s *standing) Standing(from uint64, most int) ([]spool.OutboxRow, uint64, error) {
	rest := s.rows[min(from, uint64(len(s.rows))):]
	if len(rest) > most {
		return rest[:most], from + uint64(most), nil
	}
	return rest, 0, nil
}

func view(at time.Time, state spool.State) spool.View {
	v := spool.View{State: state}
	v.AcceptedAt = at
	return v
}

func TestWhatIsFinishedIsPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		sent := view(at, spool.StateDelivered)
		sent.Attempts, sent.DeliveredAt = 2, at.Add(time.Minute)
		sent.History = []spool.Attempt{{Number: 1, StatusCode: 500, Error: "http_500"}, {Number: 2, StatusCode: 204, StartedAt: at, Duration: time.Second}}
		given := view(at, spool.StateDeadLetter)
		given.DeadReason = spool.ReasonExpired
		known := views{"a": sent, "b": given, "c": view(at, spool.StateFailed), "d": view(at, spool.StatePending), "f": view(at.Add(time.Hour), spool.StatePending),
			"g": given, "h": sent}
		var dropped atomic.Int64
		b := start(t, func(b *bench) {
			b.parts.Events = known
			b.parts.Payload = func(r spool.OutboxRow) []byte {
				if r.State == spool.StateDeadLetter {
					return []byte("body of " + r.EventID)
				}
				return nil
			}
			b.parts.Snapshot = func() Snapshot { return Snapshot{Heartbeat: pgstore.Heartbeat{DroppedRows: dropped.Load()}} }
			for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
				u := pgstore.Undelivered{EventID: id, CreatedAt: at, Version: 3, Status: "failed"}
				if id >= "g" { // known to be given up; h was sent again since, i was removed
					u.Status = "dead_letter"
				}
				b.store.undelivered = append(b.store.undelivered, u)
			}
		})
		var got []string
		for _, r := range b.store.seen().corrected {
			got = append(got, fmt.Sprintf("%s:%s:%d:%d", r.EventID, r.Status, r.Version, r.Attempts))
		}
		if text := strings.Join(got, " "); text != "a:delivered:3:2 b:dead_letter:3:0 e::3:0 f::3:0 h:delivered:3:2 i::3:0" {
			t.Errorf("corrected %s", text)
		}
		first, second := b.store.seen().corrected[0], b.store.seen().corrected[1]
		if first.Payload != nil || string(second.Payload) != "body of b" {
			t.Errorf("bodies %q and %q", first.Payload, second.Payload)
		}
		if first.Attempt == nil || first.Attempt.StatusCode != 204 || !first.DeliveredAt.Equal(at.Add(time.Minute)) {
			t.Errorf("%+v, %+v", first, first.Attempt)
		}
		pass(time.Hour)
		if n := b.store.seen().compared; n != 1 {
			t.Errorf("compared %d times without a cause", n)
		}
		dropped.Store(5)
		pass(time.Hour)
		if n := b.store.seen().compared; n != 2 {
			t.Errorf("compared %d times after rows were dropped", n)
		}
		b.end()
	})
}

func TestComparisonGoesPageByPageAndGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(b *bench) {
			b.parts.Events = views{}
			for i := range 2*checkRows + 1 {
				b.store.undelivered = append(b.store.undelivered, pgstore.Undelivered{EventID: fmt.Sprintf("%06d", i)})
			}
			for i := range 150 {
				b.outbox.add(fmt.Sprint(i)) // more than a batch: these come first
			}
			b.store.fail = func(call string, _ []pgstore.Row) error {
				if call == "undelivered" && b.outbox.left() > 0 {
					return errors.New("compared before the outbox was empty")
				}
				return nil
			}
		})
		pass(5 * time.Second)
		if seen := b.store.seen(); seen.compared != 3 || len(seen.corrected) != 2*checkRows+1 || b.Status().Error != nil {
			t.Errorf("%d pages, %d corrected, status %+v", seen.compared, len(seen.corrected), b.Status())
		}
		b.end()
	})
}

// TestADamagedRecordHoldsNothingUp: of an event that cannot be looked up nothing is put right, and sync goes on.
func TestADamagedRecordHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		b := start(t, func(b *bench) {
			b.parts.Events = views{"damaged": {}, "b": view(at, spool.StateDelivered)}
			for _, id := range []string{"damaged", "b"} {
				b.store.undelivered = append(b.store.undelivered, pgstore.Undelivered{EventID: id, CreatedAt: at, Version: 3, Status: "failed"})
			}
		})
		pass(time.Minute)
		if got := b.store.seen().corrected; len(got) != 1 || got[0].EventID != "b" {
			t.Errorf("corrected %+v", got)
		}
		if st := b.Status(); st.Error != nil {
			t.Errorf("sync stands still: %s", *st.Error)
		}
		b.end()
	})
}

// TestWhatTheStoreNeverHeardOfIsTold: page by page behind the outbox, only what is not known, and again for another store.
func TestWhatTheStoreNeverHeardOfIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := &standing{}
		for i := range 2*checkRows + 1 {
			waits.rows = append(waits.rows, spool.OutboxRow{EventID: fmt.Sprintf("%06d", i), Version: 2, Endpoint: "https://a.example", State: spool.StateFailed})
		}
		b := start(t, func(b *bench) {
			b.parts.Events = waits
			b.parts.Snapshot = func() (none Snapshot) { return none }
			b.store.known = map[string]uint64{"000000": 2, "000001": 1}
			b.outbox.add("new")
			b.store.fail = func(call string, rows []pgstore.Row) error {
				if call == "unknown" && b.outbox.left() > 0 {
					return errors.New("looked before the outbox was empty")
				}
				if call == "write" && len(rows) > 0 && slices.ContainsFunc(rows, func(r pgstore.Row) bool { return r.EventID == "000300" }) {
					return fmt.Errorf("write a batch: %w", errData)
				}
				return nil
			}
		})
		pass(time.Minute)
		got := strings.Fields(b.store.written())
		if len(got) != 2*checkRows || got[0] != "new" || got[1] != "000001" || slices.Contains(got, "000300") {
			t.Errorf("%d written, %.40q…", len(got), got)
		}
		if seen := b.store.seen(); seen.looked != 3 || seen.compared != 1 {
			t.Errorf("%d pages of the spool, %d of the store", seen.looked, seen.compared)
		}
		if n := len(b.outbox.apart()); n != 0 || b.Status().Error != nil {
			t.Errorf("%d set apart, status %+v", n, b.Status())
		}
		b.Reopen()
		pass(time.Minute)
		if seen := b.store.seen(); seen.looked != 6 {
			t.Errorf("%d pages after another store was opened", seen.looked)
		}
		b.store.set(func() { b.store.forgot = true })
		pass(time.Minute)
		if seen := b.store.seen(); seen.looked != 9 {
			t.Errorf("%d pages after the store was made anew beside us", seen.looked)
		}
		b.end()
	})
}
