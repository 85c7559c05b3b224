package spool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const endpointA = "https://a.example"

func TestRetryStartsBudgetAnew(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond).UTC()
	r := newRig(t, func(c *Config) { c.Now = func() time.Time { return now } })
	ev := event("a", endpointA, "x")
	ev.AcceptedAt = now
	r.append(ev)
	for i := range 3 {
		l := r.lease(endpointA, 1)[0]
		v := VerdictRetry
		if i == 2 {
			v = VerdictDead
		}
		r.finish(l, Result{Attempt: attempt(l, 500), Verdict: v, NextAttempt: now, Reason: ReasonExhausted,
			Answer: &Answer{StatusCode: 500, Body: []byte("no")}})
	}
	v, err := r.Get("a", true)
	if err != nil || v.State != StateDeadLetter || v.DeadReason != ReasonExhausted || !v.DeadAt.Equal(now) ||
		v.Charged != 3 || string(v.Body) != "x" || v.Answer == nil || string(v.Answer.Body) != "no" {
		t.Fatalf("%+v, %v", v, err)
	}
	now = now.Add(time.Hour)
	if err := r.Retry(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	l := r.lease(endpointA, 1)[0]
	p := l.Progress
	if p.Attempts != 3 || p.Charged != 0 || !p.Since.Equal(now) || p.DeadReason != "" || len(p.History) != 3 {
		t.Errorf("progress after the replay: %+v", p)
	}
	r.Release(l)
}

func TestAdminErrors(t *testing.T) {
	r := newRig(t)
	r.append(event("waiting", endpointA, "x"))
	if err := r.Retry(t.Context(), "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("retry of nothing: %v", err)
	}
	if err := r.Delete(t.Context(), "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("delete of nothing: %v", err)
	}
	if _, err := r.Get("none", false); !errors.Is(err, ErrNotFound) {
		t.Errorf("get of nothing: %v", err)
	}
	l := r.lease(endpointA, 1)[0]
	if err := r.Retry(t.Context(), "waiting"); !errors.Is(err, ErrBusy) {
		t.Errorf("retry of a leased event: %v", err)
	}
	if err := r.Delete(t.Context(), "waiting"); !errors.Is(err, ErrBusy) {
		t.Errorf("delete of a leased event: %v", err)
	}
	r.Release(l)
	if err := r.Delete(t.Context(), "waiting"); err != nil {
		t.Error(err)
	}
	if got := r.lease(endpointA, 1); len(got) != 0 {
		t.Errorf("leased after its deletion: %+v", got)
	}
}

// TestDeadLettersOnly: what was chosen from a list of dead letters is left alone once it is none any more.
func TestDeadLettersOnly(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"leased", "delivered", "dead", "doomed", "pending"} {
		r.append(event(id, endpointA, "x"))
		switch l := r.lease(endpointA, 1)[0]; id {
		case "delivered":
			r.finish(l, delivered(l))
		case "dead", "doomed":
			r.finish(l, Result{Attempt: attempt(l, 500), Verdict: VerdictDead, Reason: ReasonExhausted})
		case "pending":
			r.Release(l)
		}
	}
	calls := map[string]func(context.Context, string) error{"retry": r.RetryDead, "delete": r.DeleteDead}
	for name, call := range calls {
		for id, want := range map[string]error{
			"pending": ErrNotDead, "leased": ErrNotDead, "delivered": ErrNotDead, "none": ErrNotFound,
		} {
			if err := call(t.Context(), id); !errors.Is(err, want) {
				t.Errorf("%s of %s: %v, want %v", name, id, err, want)
			}
		}
	}
	r.must(r.RetryDead(t.Context(), "dead"))
	r.must(r.DeleteDead(t.Context(), "doomed"))
	for name, call := range calls {
		if err := call(t.Context(), "dead"); !errors.Is(err, ErrNotDead) {
			t.Errorf("%s of a dead letter that was replayed: %v", name, err)
		}
		if err := call(t.Context(), "doomed"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s of a dead letter that was deleted: %v", name, err)
		}
	}
	if st := r.Stats(); st.DeadLetter != 0 || st.Failed != 1 || st.Pending != 2 || st.Delivered != 1 {
		t.Errorf("stats %+v", st)
	}
}

func TestListAndDeadLetters(t *testing.T) {
	r := newRig(t)
	now := time.Now().Truncate(time.Microsecond)
	reason := func(i int) string {
		if i == 3 {
			return ReasonExpired
		}
		return ReasonPermanent
	}
	for i := range 12 {
		ev := event(fmt.Sprint(i), endpointA, "x")
		ev.AcceptedAt = now.Add(time.Duration(i) * time.Second)
		r.append(ev)
	}
	leases, _, err := r.Lease(endpointA, now.Add(time.Hour), 100, 1<<30)
	if err != nil || len(leases) != 12 {
		t.Fatal(len(leases), err)
	}
	for i, l := range leases { // 0-2 delivered, 3-5 dead, 6-8 failed, 9-10 pending, 11 in flight
		switch i / 3 {
		case 0:
			r.finish(l, delivered(l))
		case 1:
			r.finish(l, Result{Attempt: attempt(l, 400+i), Verdict: VerdictDead, Reason: reason(i)})
		case 2:
			r.finish(l, Result{Attempt: attempt(l, 503), Verdict: VerdictRetry, NextAttempt: now.Add(time.Hour)})
		default:
			if i != 11 {
				r.Release(l)
			}
		}
	}
	tests := []struct {
		name string
		q    Query
		want string
	}{
		{"all", Query{}, "11 10 9 8 7 6 5 4 3 2 1 0"},
		{"pending", Query{State: StatePending}, "10 9"},
		{"in flight", Query{State: StateInFlight}, "11"},
		{"failed", Query{State: StateFailed}, "8 7 6"},
		{"dead", Query{State: StateDeadLetter}, "5 4 3"},
		{"delivered", Query{State: StateDelivered}, "2 1 0"},
		{"status", Query{Status: 404}, "4"},
		{"error", Query{Error: "http_503"}, "8 7 6"},
		{"error of what expired after attempts", Query{Error: "http_403"}, "3"},
		{"expired", Query{Error: ReasonExpired}, "3"},
		{"permanent", Query{State: StateDeadLetter, Error: ReasonPermanent}, "5 4"},
		{"other endpoint", Query{Endpoint: "https://b.example"}, ""},
		{"since", Query{State: StatePending, Since: now.Add(10 * time.Second)}, "10"},
		{"until", Query{State: StatePending, Until: now.Add(10 * time.Second)}, "9"},
	}
	for _, tt := range tests {
		for _, limit := range []int{1, 2, 1000} {
			t.Run(fmt.Sprintf("%s by %d", tt.name, limit), func(t *testing.T) {
				tt.q.Limit = limit
				if got := allPages(t, r.Spool, tt.q); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		}
	}
	var dead []string
	err = r.DeadLetters(Query{Error: "http_404"}, func(v View) bool { dead = append(dead, v.ID); return true })
	if err != nil || fmt.Sprint(dead) != "[4]" {
		t.Error(dead, err)
	}
	page, err := r.List(Query{Limit: 1})
	r.must(err)
	for _, cursor := range []string{"?", "zzz", "1", "-", page.Next + "0", "0" + page.Next, strings.ToUpper(page.Next) + "Z", " " + page.Next} {
		if _, err := r.List(Query{Cursor: cursor}); !errors.Is(err, ErrCursor) {
			t.Errorf("a bad cursor %q: %v", cursor, err)
		}
	}
}

// TestRunning: what waits in its holder's memory is not in flight, wherever one asks.
func TestRunning(t *testing.T) {
	var running atomic.Uint64
	r := newRig(t, func(c *Config) { c.Running = func(seq uint64) bool { return seq == running.Load() } })
	for i := range 4 {
		r.append(event(fmt.Sprint(i), endpointA, "x"))
	}
	leases := r.lease(endpointA, 4)
	r.finish(leases[0], Result{Attempt: attempt(leases[0], 500), Verdict: VerdictRetry, NextAttempt: r.now()})
	r.finish(leases[1], Result{Attempt: attempt(leases[1], 500), Verdict: VerdictRetry, NextAttempt: r.now()})
	leases = append(leases[2:], r.lease(endpointA, 4)...)
	for seq, want := range []string{"in_flight: pending:3 2 failed:1 0", "in_flight:0 pending:3 2 failed:1", "", "in_flight:2 pending:3 failed:1 0"} {
		if want == "" {
			continue
		}
		running.Store(uint64(seq))
		var got []string
		for _, st := range []State{StateInFlight, StatePending, StateFailed} {
			ids := allPages(t, r.Spool, Query{State: st})
			got = append(got, st.String()+":"+ids)
			for _, id := range strings.Fields(ids) {
				if v, err := r.Get(id, false); err != nil || v.State != st {
					t.Errorf("event %s is %s in the list of %s", id, v.State, st)
				}
				twin := event(id, endpointA, "x")
				if res := r.append(twin); !res.Duplicate || res.State != st {
					t.Errorf("a duplicate of %s: %+v, want %s", id, res, st)
				}
			}
			if st == StateInFlight && int(r.Stats().Leased) != len(strings.Fields(ids)) {
				t.Errorf("%d are in flight, and %q listed", r.Stats().Leased, ids)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with %d running: %q, want %q", seq, got, want)
		}
	}
	for _, l := range leases {
		r.Release(l)
	}
}

func allPages(t *testing.T, s *Spool, q Query) (ids string) {
	t.Helper()
	for {
		page, err := s.List(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Events {
			if ids != "" {
				ids += " "
			}
			ids += v.ID
			if v.Body != nil || v.Headers != nil {
				t.Errorf("event %s is listed with its payload", v.ID)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return ids
		}
	}
}

func TestOutboxTellsTheStory(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Outbox = true })
	ev := event("a", "partner-a", "x")
	ev.Named, ev.Target, ev.MaxAttempts = true, "/extra?cid=secret", 7
	r.append(ev)
	l := r.lease("partner-a", 1)[0]
	r.finish(l, Result{Attempt: attempt(l, 503), Verdict: VerdictDead, Reason: ReasonExhausted})
	if err := r.Retry(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	l = r.lease("partner-a", 1)[0]
	r.finish(l, delivered(l))
	b := event("b", endpointA, "y")
	r.append(b)
	accepted := map[string]time.Time{"a": ev.AcceptedAt, "b": b.AcceptedAt}
	if err := r.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if err := r.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	rows, more, err := r.Outbox(100)
	if err != nil || more {
		t.Fatal(more, err)
	}
	var got []string
	for _, row := range rows {
		number := 0
		if row.Attempt != nil {
			number = row.Attempt.Number
		}
		what := row.State.String()
		if row.Deleted {
			what = fmt.Sprintf("deleted from %s, accepted %v", row.Endpoint, row.AcceptedAt.Equal(accepted[row.EventID]))
		}
		got = append(got, fmt.Sprintf("%d %s v%d %s #%d of %d %q", row.Index, row.EventID, row.Version, what, number,
			row.MaxAttempts, row.Target))
	}
	want := []string{
		`1 a v1 pending #0 of 7 "/extra"`, `2 a v2 dead_letter #1 of 7 "/extra"`, `3 a v3 failed #0 of 7 "/extra"`,
		`4 a v4 delivered #2 of 7 "/extra"`, `5 b v1 pending #0 of 0 ""`, `6 b v2 deleted from https://a.example, accepted true #0 of 0 ""`,
		`7 a v4611686018427387904 deleted from partner-a, accepted true #0 of 0 ""`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rows:\n%q\nwant:\n%q", got, want)
	}
	if err := r.OutboxDone(3); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	if rows, more, err := r.Outbox(1); err != nil || !more || len(rows) != 1 || rows[0].Index != 4 {
		t.Errorf("after OutboxDone: %+v, %v", rows, err)
	}
	if n := r.Stats().OutboxRows; n != 4 {
		t.Errorf("%d rows are left", n)
	}
}

// TestOutboxBodies: the acceptance's row has the body, outlives the delivery, and stays within the bounds of the outbox.
func TestOutboxBodies(t *testing.T) {
	for _, bodies := range []bool{false, true} {
		t.Run(fmt.Sprint(bodies), func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Outbox, c.OutboxBodies, c.OutboxMaxBytes, c.MaxEventBytes = true, bodies, mib, mib })
			r.append(event("a", endpointA, "the body"))
			l := r.lease(endpointA, 1)[0]
			r.finish(l, delivered(l))
			r.append(event("empty", endpointA, ""))
			r.append(event("too big", endpointA, strings.Repeat("x", mib)))
			r.reopen()
			rows, _, err := r.Outbox(10)
			r.must(err)
			for i, row := range rows {
				want := ""
				if i == 0 && bodies {
					want = "the body"
				}
				if string(row.Body) != want {
					t.Errorf("row %d of %s has %d bytes of body, want %q", i, row.EventID, len(row.Body), want)
				}
			}
			if len(rows) != 4 {
				t.Errorf("%d rows", len(rows))
			}
		})
	}
	r := newRig(t, func(c *Config) { c.Outbox, c.OutboxBodies, c.MaxBytes = true, true, 128*mib })
	r.store.cur.db.NoSync = true
	for i := range 100 {
		r.append(event(fmt.Sprint(i), endpointA, strings.Repeat("x", 300_000)))
	}
	if st := r.Stats(); st.HistoryBytes > 16*mib || st.HistoryDropped == 0 {
		t.Errorf("stats %+v", st)
	}
	held := 0
	rows, more, err := r.Outbox(1000)
	r.must(err)
	for _, row := range rows {
		held += len(row.Body)
	}
	if held == 0 || held > outboxReadBytes+mib || !more {
		t.Errorf("%d rows with %d bytes at once, more: %v", len(rows), held, more)
	}
}
