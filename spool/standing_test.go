package spool

import (
	"reflect"
	"testing"
	"time"
)

// TestStandingIsWhatTheOutboxToldLast: of each event that is not delivered, page by page, and where no outbox was kept too.
func TestStandingIsWhatTheOutboxToldLast(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Outbox = true })
	for _, id := range []string{"delivered", "dead", "failed"} {
		r.append(event(id, "https://"+id+".example", "x"))
	}
	last := func(id string) *Lease { return r.lease("https://"+id+".example", 1)[0] }
	l := last("delivered")
	r.finish(l, delivered(l))
	l = last("dead")
	r.finish(l, Result{Attempt: attempt(l, 503), Verdict: VerdictDead, Reason: ReasonExhausted})
	l = last("failed")
	r.finish(l, Result{Attempt: attempt(l, 503), Verdict: VerdictRetry, NextAttempt: r.now().Add(time.Hour)})
	r.append(event("new", endpointA, "x"))

	rows, _, err := r.Outbox(100)
	r.must(err)
	want := map[string]OutboxRow{}
	for _, row := range rows {
		row.Index, row.Target = 0, ""
		want[row.EventID] = row
	}
	delete(want, "delivered")
	standing := func() map[string]OutboxRow {
		got := map[string]OutboxRow{}
		for from, pages := uint64(0), 0; ; pages++ {
			rows, next, err := r.Standing(from, 1)
			r.must(err)
			if len(rows) > 1 || pages > 9 {
				t.Fatalf("page %d has %d rows", pages, len(rows))
			}
			for _, row := range rows {
				if row.DeadAt.IsZero() == (row.State == StateDeadLetter) {
					t.Errorf("%s, given up at %v", row.State, row.DeadAt)
				}
				row.DeadAt = time.Time{}
				got[row.EventID] = row
			}
			if from = next; next == 0 {
				return got
			}
		}
	}
	if got := standing(); !reflect.DeepEqual(got, want) {
		t.Errorf("standing:\n%+v\nwant:\n%+v", got, want)
	}
	r.cfg.Outbox = false
	r.reopen()
	if got := standing(); !reflect.DeepEqual(got, want) {
		t.Errorf("without an outbox:\n%+v\nwant:\n%+v", got, want)
	}
}

// TestStandingIsBoundedByBytes, since bodies may be asked for next.
func TestStandingIsBoundedByBytes(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxEventBytes = outboxReadBytes })
	for _, id := range []string{"a", "b", "c"} {
		ev := event(id, endpointA, "")
		ev.Body = make([]byte, outboxReadBytes/2)
		r.append(ev)
	}
	rows, next, err := r.Standing(0, 100)
	r.must(err)
	if len(rows) != 2 || next == 0 {
		t.Errorf("%d rows, next %d", len(rows), next)
	}
}
