package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"postern/limiter"
	"postern/limiter/breaker"
	"postern/limiter/quantile"
	"postern/proxy/retry"
	"postern/spool"
)

// fakeStore keeps events in a slice and commits at once. It holds the scheduler to the spool's rules: a lease is ended
// exactly once, and nothing is leased twice.
type fakeStore struct {
	t  testing.TB
	mu sync.Mutex // guards what follows
	// events are those not finished, due at due; leased are out.
	events     map[uint64]*spool.Lease
	due        map[uint64]time.Time
	leased     map[uint64]bool
	results    map[uint64][]spool.Result
	states     map[string][]byte
	leaseCalls int
	unreadable int
	saves      int
	unwritable bool
	committed  func([]spool.Committed)
	seq        uint64
}

func newFakeStore(t testing.TB) *fakeStore {
	return &fakeStore{t: t, events: map[uint64]*spool.Lease{}, due: map[uint64]time.Time{}, leased: map[uint64]bool{},
		results: map[uint64][]spool.Result{}, states: map[string][]byte{}}
}

// add accepts an event that is due now, and hands it on as the spool does.
func (f *fakeStore) add(endpoint string, change ...func(*spool.Event)) uint64 {
	f.mu.Lock()
	l := f.putLocked(endpoint, change...)
	f.leased[l.Event.Seq] = true // before anybody can see it free, as in the spool
	f.mu.Unlock()
	l.Fresh = true
	f.committed([]spool.Committed{{Endpoint: endpoint, DueAt: time.Now(), Lease: l}})
	return l.Event.Seq
}

// put stores an event that only the disk knows of.
func (f *fakeStore) put(endpoint string, change ...func(*spool.Event)) *spool.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.putLocked(endpoint, change...)
}

func (f *fakeStore) putLocked(endpoint string, change ...func(*spool.Event)) *spool.Lease {
	f.seq++
	e := &spool.Event{Seq: f.seq, ID: fmt.Sprintf("evt_%d", f.seq), Endpoint: endpoint, AcceptedAt: time.Now()}
	for _, c := range change {
		c(e)
	}
	l := &spool.Lease{Event: e, Progress: spool.Progress{Since: e.AcceptedAt}}
	f.events[e.Seq], f.due[e.Seq] = l, time.Now()
	return l
}

func (f *fakeStore) Lease(endpoint string, now time.Time, max int, maxBytes int64) (got []*spool.Lease, next time.Time, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaseCalls++
	if f.unreadable > 0 { // all that was due was set aside
		f.unreadable--
		return nil, now, nil
	}
	var waiting []*spool.Lease
	for seq, l := range f.events {
		if l.Event.Endpoint == endpoint && !f.leased[seq] {
			waiting = append(waiting, l)
		}
	}
	slices.SortFunc(waiting, func(a, b *spool.Lease) int {
		return cmp.Or(f.due[a.Event.Seq].Compare(f.due[b.Event.Seq]), cmp.Compare(a.Event.Seq, b.Event.Seq))
	})
	for _, l := range waiting {
		seq := l.Event.Seq
		size := int64(len(l.Event.Target) + len(l.Event.Body))
		if len(got) == max || len(got) > 0 && size > maxBytes || f.due[seq].After(now) {
			return got, f.due[seq], nil
		}
		maxBytes -= size
		f.leased[seq] = true
		l.Fresh = false
		got = append(got, l)
	}
	return got, time.Time{}, nil
}

func (f *fakeStore) end(l *spool.Lease) {
	if !f.leased[l.Event.Seq] {
		f.t.Errorf("the lease of event %d was ended twice", l.Event.Seq)
	}
	delete(f.leased, l.Event.Seq)
}

func (f *fakeStore) Finish(l *spool.Lease, r spool.Result) {
	f.mu.Lock()
	f.end(l)
	seq := l.Event.Seq
	f.results[seq] = append(f.results[seq], r)
	if r.EndpointState != nil {
		f.states[l.Event.Endpoint] = r.EndpointState
	}
	if r.Verdict == spool.VerdictRetry {
		next := *l
		next.Progress.Attempts++
		next.Progress.Charged++
		next.Progress.NextAttempt = r.NextAttempt
		next.Progress.History = append(slices.Clip(next.Progress.History), *r.Attempt)
		f.events[seq], f.due[seq] = &next, r.NextAttempt
	} else {
		delete(f.events, seq)
		delete(f.due, seq)
	}
	f.mu.Unlock()
	r.Done(nil)
}

func (f *fakeStore) Release(l *spool.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end(l)
}

func (f *fakeStore) SaveEndpointState(endpoint string, state []byte, done func(error)) {
	f.mu.Lock()
	f.saves++
	if f.states[endpoint] = state; state == nil {
		delete(f.states, endpoint)
	}
	f.mu.Unlock()
	done(nil)
}

func (f *fakeStore) Writable() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.unwritable
}

func (f *fakeStore) setWritable(ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unwritable = !ok
}

// of is what became of an event.
func (f *fakeStore) of(seq uint64) []spool.Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.results[seq])
}

func (f *fakeStore) finished() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seqsLocked() - len(f.events)
}

func (f *fakeStore) seqsLocked() int { return int(f.seq) }

func (f *fakeStore) leasedNow() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.leased)
}

// fakeSender answers by a function and keeps what it was asked.
type fakeSender struct {
	mu       sync.Mutex // guards what follows
	answer   func(ctx context.Context, a Attempt) Outcome
	sent     []sending
	now      map[string]int
	most     map[string]int
	all, top int
}

type sending struct {
	endpoint string
	seq      uint64
	number   int
	at       time.Time
}

func newFakeSender(answer func(context.Context, Attempt) Outcome) *fakeSender {
	return &fakeSender{answer: answer, now: map[string]int{}, most: map[string]int{}}
}

func (f *fakeSender) Send(ctx context.Context, a Attempt) Outcome {
	name := a.Lease.Event.Endpoint
	f.mu.Lock()
	f.sent = append(f.sent, sending{name, a.Lease.Event.Seq, a.Number, time.Now()})
	f.now[name]++
	f.all++
	f.most[name], f.top = max(f.most[name], f.now[name]), max(f.top, f.all)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now[name]--
		f.all--
	}()
	start := time.Now()
	if a.Wrote != nil {
		a.Wrote(start)
	}
	o := f.answer(ctx, a)
	o.Attempt.Number, o.Attempt.StartedAt, o.Attempt.Duration = a.Number, start, time.Since(start)
	return o
}

func (f *fakeSender) log() []sending {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

func (f *fakeSender) mostAtOnce() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.top
}

// ok, status and hang are answers.
func ok(context.Context, Attempt) Outcome {
	return Outcome{Attempt: spool.Attempt{StatusCode: 200}, Sampled: true}
}

func failWith(code int) func(context.Context, Attempt) Outcome {
	return func(context.Context, Attempt) Outcome {
		return Outcome{Attempt: spool.Attempt{StatusCode: code, Error: string(retry.HTTP(code))}, Class: retry.HTTP(code), Sampled: true}
	}
}

func hang(ctx context.Context, _ Attempt) Outcome {
	<-ctx.Done()
	return Outcome{Cut: true}
}

// policies gives every endpoint the same policy, but for those that have their own.
type policies struct {
	mu     sync.Mutex // guards what follows
	common Policy
	own    map[string]Policy
	gone   map[string]bool
}

func (p *policies) Policy(name string) (Policy, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own, ok := p.own[name]; ok {
		return own, !p.gone[name]
	}
	return p.common, !p.gone[name]
}

func usual() Policy {
	return Policy{
		Named: true,
		Limiter: limiter.Policy{Concurrency: 8, Burst: 1, Breaker: breaker.Config{FailureThreshold: 1000, Cooldown: 5 * time.Minute,
			MaxCooldown: time.Hour, SlowP95: 5 * time.Second, SlowFailureThreshold: 1000}},
		Retry: retry.Policy{MaxAttempts: 5, BaseDelay: 30 * time.Second, MaxDelay: time.Hour, MaxRetryAfter: time.Hour},
	}
}

// listener keeps what it was told.
type listener struct {
	mu      sync.Mutex // guards what follows
	told    []Told
	changes []limiter.Snapshot
}

func (l *listener) Told(t Told) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, t)
}

func (l *listener) Changed(_ string, s limiter.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, s)
}

// rig is a scheduler with fakes around it.
type rig struct {
	*Scheduler
	store  *fakeStore
	sender *fakeSender
	ears   *listener
	book   *policies
}

// inBubble runs f with a running scheduler in a bubble of virtual time, and stops it at the end.
func inBubble(t *testing.T, answer func(context.Context, Attempt) Outcome, f func(r *rig), change ...func(*Config, *policies)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{store: newFakeStore(t), sender: newFakeSender(answer), ears: &listener{}, book: &policies{common: usual(), own: map[string]Policy{}, gone: map[string]bool{}}}
		cfg := Config{Concurrency: 64, Store: r.store, Sender: r.sender, Policies: r.book, Observer: r.ears,
			Windows: quantile.NewPool(1000), Logger: slog.New(slog.DiscardHandler)}
		for _, c := range change {
			c(&cfg, r.book)
		}
		r.Scheduler = New(cfg)
		r.store.committed = r.Committed
		go r.Run()
		f(r)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		r.Stop(ended)
		if n := r.store.leasedNow(); n != 0 {
			t.Errorf("%d leases are still out after the stop", n)
		}
	})
}
