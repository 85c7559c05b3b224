package spool

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"postern/spool/internal/layout"
)

// outboxIDs are the events that the outbox speaks of, in order.
func (r *rig) outboxIDs() (ids []string) {
	r.t.Helper()
	rows, _, err := r.Outbox(5000)
	r.must(err)
	for _, row := range rows {
		ids = append(ids, row.EventID)
	}
	return ids
}

func (r *rig) refused() (ids []string) {
	r.t.Helper()
	rows, total, err := r.Refused(5000)
	r.must(err)
	if total != len(rows) {
		r.t.Errorf("%d rows, and %d in all", len(rows), total)
	}
	for _, row := range rows {
		ids = append(ids, row.EventID+": "+row.Cause)
	}
	return ids
}

func TestRefusedRowsWaitForAPerson(t *testing.T) {
	c := newClock()
	r := newRig(t, c.use, func(cfg *Config) { cfg.Outbox = true })
	for _, id := range []string{"a", "b", "c"} {
		r.append(event(id, endpointA, "x"))
	}
	before, _, err := r.Outbox(10)
	r.must(err)
	r.must(r.OutboxRefuse(2, "no teapots"))
	r.must(r.OutboxRefuse(2, "again")) // no longer there
	r.must(r.OutboxRefuse(77, "never was"))
	if got := r.outboxIDs(); !reflect.DeepEqual(got, []string{"a", "c"}) {
		t.Errorf("outbox: %q", got)
	}
	if n := r.Stats().OutboxRows; n != 2 {
		t.Errorf("%d rows are counted", n)
	}
	r.must(r.OutboxDone(3))

	r.reopen()
	rows, _, err := r.Refused(10)
	r.must(err)
	want := []RefusedRow{{OutboxRow: before[1], Cause: "no teapots", At: c.now()}}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("refused %+v\nwant    %+v", rows, want)
	}
	r.append(event("d", endpointA, "x"))
	n, err := r.RetryRefused()
	r.must(err)
	if got := r.outboxIDs(); n != 1 || !reflect.DeepEqual(got, []string{"d", "b"}) {
		t.Errorf("%d sent again; outbox %q", n, got)
	}
	if got := r.refused(); len(got) != 0 {
		t.Errorf("still refused: %q", got)
	}
	if n, err := r.RetryRefused(); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
}

func TestRefusedRowsAreBounded(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Outbox = true })
	ev := event("a", endpointA, "x")
	r.must(r.do(func(t *txn) error {
		for range maxRefused + 3 {
			p := initialProgress(ev)
			t.outbox(ev, &p, OutboxRow{State: StatePending})
		}
		return nil
	}))
	for i := range maxRefused + 3 {
		if i < 10 || i > maxRefused-10 {
			r.must(r.OutboxRefuse(uint64(i+1), strings.Repeat("é", maxCause)))
		} else {
			r.must(r.do(func(t *txn) error {
				key := layout.SeqKey(uint64(1_000_000 + i))
				t.put(layout.Refused, key, encodeRefused(time.Now(), "x", nil))
				return nil
			}))
		}
	}
	_, total, err := r.Refused(1)
	r.must(err)
	if st := r.Stats(); total != maxRefused || st.HistoryDropped != 3 {
		t.Errorf("%d rows are kept, %d dropped", total, st.HistoryDropped)
	}
	// Of 22 real ones the 3 oldest were dropped. Those without a row inside were never valid, and go.
	if n, err := r.RetryRefused(); n != 19 || err != nil {
		t.Errorf("%d rows came back, %v", n, err)
	}
	if got := r.refused(); len(got) != 0 {
		t.Errorf("still refused: %q", got)
	}
}

func TestRefusedRowsSurviveCompactionAndSalvage(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Outbox = true })
	r.append(event("a", endpointA, "x"))
	r.must(r.OutboxRefuse(1, "why"))
	want := fmt.Sprint(r.refused())
	r.close()
	if _, _, err := Compact(r.cfg.Dir, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Salvage(r.cfg.Dir); err != nil {
		t.Fatal(err)
	}
	r.open()
	if got := fmt.Sprint(r.refused()); got != want {
		t.Errorf("refused %s, want %s", got, want)
	}
}

func FuzzRefused(f *testing.F) {
	f.Add(encodeRefused(time.UnixMicro(5), "why", encodeOutboxRow(&OutboxRow{EventID: "a", State: StateFailed}, nil)))
	f.Fuzz(func(t *testing.T, rec []byte) {
		row, err := decodeRefused(1, rec, nil)
		if err != nil {
			return
		}
		again, err := decodeRefused(1, encodeRefused(row.At, row.Cause, encodeOutboxRow(&row.OutboxRow, nil)), nil)
		if err != nil || !reflect.DeepEqual(again, row) && len(row.Cause) <= maxCause {
			t.Errorf("%+v comes back as %+v, %v", row, again, err)
		}
	})
}
