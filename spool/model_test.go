package spool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"postern/spool/internal/keyring"
)

// model is the spool as a plain map, for random histories.
type model struct {
	t       *rapid.T
	cfg     Config
	s       *Spool
	clock   atomic.Int64 // microseconds since 1970
	events  map[string]*modelEvent
	leases  map[string]*Lease
	next    int
	failing atomic.Int32 // commits that fail from now on
	visible atomic.Int32 // commits that are reported as failed from now on
}

type modelEvent struct {
	id, endpoint, body string
	state              State
	attempts           int
	due                time.Time
}

func (m *model) now() time.Time { return time.UnixMicro(m.clock.Load()).UTC() }

func (m *model) open() {
	ring, err := keyring.New(m.cfg.Keys...)
	if err != nil {
		m.t.Fatal(err)
	}
	s, err := openWith(m.cfg, ring)
	if err != nil {
		m.t.Fatal(err)
	}
	s.keys.end()                 // nothing is rewritten in the background: the faults are meant for what the model does
	s.store.cur.db.NoSync = true // histories are about order, the killed process is about syncs
	whole := s.store.commit
	s.store.commit = func(tx *bolt.Tx) error {
		switch {
		case m.failing.Load() > 0:
			m.failing.Add(-1)
			return errors.Join(tx.Rollback(), errDisk)
		case m.visible.Load() > 0:
			m.visible.Add(-1)
			return errors.Join(whole(tx), errDisk)
		}
		return whole(tx)
	}
	m.s = s
}

func (m *model) close() {
	m.failing.Store(0)
	m.visible.Store(0)
	if err := m.s.Close(context.Background()); err != nil {
		m.t.Fatal(err)
	}
	clear(m.leases)
	report, err := Check(m.cfg.Dir, m.cfg.Keys...)
	if err != nil || len(report.Problems) > 0 {
		m.t.Fatalf("check: %v, %q", err, report.Problems)
	}
}

func (m *model) endpoint() string {
	return rapid.SampledFrom([]string{"https://a.example", "https://b.example"}).Draw(m.t, "endpoint")
}

func (m *model) known() string {
	ids := make([]string, 0, len(m.events))
	for id := range m.events {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		m.t.Skip("nothing is known")
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(m.t, "id")
}

func (m *model) doAppend(t *rapid.T) {
	m.next++
	size := rapid.SampledFrom([]int{0, 10, 500, 5000, 40000}).Draw(t, "size")
	e := &modelEvent{id: fmt.Sprintf("e%d", m.next), endpoint: m.endpoint(), body: string(make([]byte, size)), state: StatePending}
	ev := event(e.id, e.endpoint, e.body)
	ev.AcceptedAt = m.now()
	if rapid.Bool().Draw(t, "delayed") {
		ev.NotBefore = m.now().Add(time.Minute)
	}
	e.due = firstDue(ev)
	fails := m.failing.Load() > 0
	_, err := m.s.Append(context.Background(), ev)
	switch {
	case err == nil:
		m.events[e.id] = e
	case !fails || !errors.Is(err, ErrUnwritable):
		t.Fatalf("append: %v", err)
	}
}

func (m *model) doLease(t *rapid.T) {
	endpoint := m.endpoint()
	n := rapid.IntRange(1, 4).Draw(t, "n")
	leases, next, err := m.s.Lease(endpoint, m.now(), n, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var due []time.Time
	for _, e := range m.events {
		waits := e.state == StatePending || e.state == StateFailed
		if waits && e.endpoint == endpoint && m.leases[e.id] == nil {
			due = append(due, e.due)
		}
	}
	slices.SortFunc(due, time.Time.Compare)
	for i, l := range leases {
		e := m.events[l.Event.ID]
		switch {
		case e == nil || m.leases[e.id] != nil:
			t.Fatalf("event %s must not be leased", l.Event.ID)
		case !due[i].Equal(l.Progress.NextAttempt) || due[i].After(m.now()):
			t.Fatalf("event %s is due at %v, leased as due at %v", e.id, due[i], l.Progress.NextAttempt)
		case l.Progress.Attempts != e.attempts || string(l.Event.Body) != e.body:
			t.Fatalf("event %s: %+v, want %d attempts", e.id, l.Progress, e.attempts)
		}
		m.leases[e.id] = l
	}
	rest := due[len(leases):]
	if len(rest) == 0 != next.IsZero() || len(rest) > 0 && !rest[0].Equal(next) {
		t.Fatalf("next is due at %v, want %v", next, rest)
	}
	if len(leases) < n && len(rest) > 0 && !rest[0].After(m.now()) {
		t.Fatalf("%d leased of %d, and more is due", len(leases), n)
	}
}

func (m *model) doFinish(t *rapid.T) {
	id := m.known()
	l, e := m.leases[id], m.events[id]
	if l == nil {
		t.Skip("not leased")
	}
	delete(m.leases, id)
	r := Result{Verdict: Verdict(rapid.IntRange(1, 3).Draw(t, "verdict")), Attempt: attempt(l, 500), Reason: ReasonExhausted}
	r.NextAttempt = m.now().Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "wait")) * time.Second)
	if r.Verdict == VerdictDelivered {
		r.Attempt = attempt(l, 200)
	}
	done, again := make(chan error, 1), make(chan error, 1)
	r.Done = func(err error) { done <- err }
	m.s.Finish(l, r)
	r.Done = func(err error) { again <- err }
	m.s.Finish(l, r) // the second time means nothing
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := <-again; !errors.Is(err, ErrLeaseEnded) {
		t.Fatalf("a second end of a lease: %v", err)
	}
	e.attempts++
	e.due = r.NextAttempt
	e.state = map[Verdict]State{
		VerdictDelivered: StateDelivered, VerdictRetry: StateFailed, VerdictDead: StateDeadLetter,
	}[r.Verdict]
}

func (m *model) doRelease(t *rapid.T) {
	id := m.known()
	if l := m.leases[id]; l != nil {
		m.s.Release(l)
		delete(m.leases, id)
	}
}

func (m *model) doRetry(t *rapid.T) {
	id := m.known()
	e := m.events[id]
	fails := m.failing.Load() > 0
	err := m.s.Retry(context.Background(), id)
	switch {
	case fails && errors.Is(err, ErrUnwritable):
	case m.leases[id] != nil && errors.Is(err, ErrBusy), e.state == StateDelivered && errors.Is(err, ErrDelivered):
	case err != nil:
		t.Fatalf("retry in state %s: %v", e.state, err)
	default:
		e.due, e.state = m.now(), StateFailed
		if e.attempts == 0 {
			e.state = StatePending
		}
	}
}

func (m *model) doDelete(t *rapid.T) {
	id := m.known()
	fails := m.failing.Load() > 0
	err := m.s.Delete(context.Background(), id)
	switch {
	case fails && errors.Is(err, ErrUnwritable), m.leases[id] != nil && errors.Is(err, ErrBusy):
	case err != nil:
		t.Fatalf("delete: %v", err)
	default:
		delete(m.events, id)
	}
}

// doKeys puts a new key in force; the older ones stay for what was written under them.
func (m *model) doKeys(t *rapid.T) {
	key := []byte(fmt.Sprintf("%032d", rapid.IntRange(1, 1<<30).Draw(t, "key")))
	if slices.ContainsFunc(m.cfg.Keys, func(k []byte) bool { return string(k) == string(key) }) {
		t.Skip("it is there already")
	}
	m.cfg.Keys = append([][]byte{key}, m.cfg.Keys...)
	if err := m.s.SetKeys(context.Background(), m.cfg.Keys); err != nil && !errors.Is(err, ErrUnwritable) && !errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("set keys: %v", err)
	}
}

// doRekey rewrites everything with the newest key, after which the others are not needed.
func (m *model) doRekey(t *rapid.T) {
	if m.failing.Load() > 0 || m.visible.Load() > 0 || !m.s.Keys().needs(m.cfg.Keys) {
		t.Skip("nothing to do")
	}
	if _, done, err := m.s.rekeyPass(); err != nil || !done {
		t.Fatalf("rekey: %v, %v", done, err)
	}
	m.cfg.Keys = m.cfg.Keys[:1]
	if err := m.s.SetKeys(context.Background(), m.cfg.Keys); err != nil {
		t.Fatalf("drop the older keys: %v", err)
	}
}

// needs tells that the newest of the keys is in force and not the only one in use.
func (st KeyStatus) needs(keys [][]byte) bool {
	return len(keys) > 0 && st.Newest == keyring.IDOf(keys[0]).String() && len(st.InUse) > 1
}

// settled waits until the spool can be written again: the faults of the last step are over then.
func (m *model) settled() {
	for !m.s.Stats().Writable {
		if err := m.s.do(func(*txn) error { return nil }); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (m *model) compare(t *rapid.T) {
	m.settled()
	want := map[State]int64{}
	oldest := time.Time{}
	for id, e := range m.events {
		want[e.state]++
		if e.state == StatePending && (oldest.IsZero() || m.accepted(id).Before(oldest)) {
			oldest = m.accepted(id)
		}
		v, err := m.s.Get(id, true)
		state := v.State
		if m.leases[id] != nil {
			state = e.state
		}
		if err != nil || state != e.state || v.Attempts != e.attempts || v.Size != int64(len(e.body)) {
			t.Fatalf("event %s is %+v (%v), want %+v", id, v.State, err, e)
		}
	}
	st := m.s.Stats()
	got := map[State]int64{StatePending: st.Pending, StateFailed: st.Failed, StateDeadLetter: st.DeadLetter, StateDelivered: st.Delivered}
	for state, n := range got {
		if want[state] != n {
			t.Fatalf("%d events are %s, want %d", n, state, want[state])
		}
	}
	if !st.OldestPending.Equal(oldest) || st.Leased != int64(len(m.leases)) {
		t.Fatalf("oldest pending %v, want %v; %d leased, want %d", st.OldestPending, oldest, st.Leased, len(m.leases))
	}
}

func (m *model) accepted(id string) time.Time {
	v, err := m.s.Get(id, false)
	if err != nil {
		m.t.Fatalf("event %s: %v", id, err)
	}
	return v.AcceptedAt
}

// TestRandomHistories runs histories of operations, faults and restarts against the model.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{
			t: rt, events: make(map[string]*modelEvent), leases: make(map[string]*Lease),
		}
		m.clock.Store(time.Now().UnixMicro())
		m.cfg = Defaults()
		m.cfg.Dir = t.TempDir()
		m.cfg.MaxBytes = 16 * mib
		m.cfg.Outbox = true
		m.cfg.Now = m.now
		m.open()
		defer func() { m.close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"append":  m.doAppend,
			"lease":   m.doLease,
			"finish":  m.doFinish,
			"release": m.doRelease,
			"retry":   m.doRetry,
			"delete":  m.doDelete,
			"pass":    func(*rapid.T) { m.clock.Add(20_000_000) },
			"restart": func(*rapid.T) { m.close(); m.open() },
			"fail":    func(*rapid.T) { m.failing.Store(1) },
			"visible": func(*rapid.T) { m.visible.Store(1) },
			"keys":    m.doKeys,
			"rekey":   m.doRekey,
			"":        m.compare,
		})
	})
}
