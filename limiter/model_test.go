package limiter

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"postern/limiter/breaker"
	"postern/limiter/bucket"
)

// world is everything around a gate: a scheduler, requests on the wire, a disk, kills. It knows when each request
// really left, which the gate may never learn.
type world struct {
	*Gate
	policy Policy
	now    time.Time
	disk   []byte
	open   []*request
	leaves []time.Time
	mood   []Kind // what attempts end with
	// asked is a reservation whose commit is under way.
	asked     int
	askedDisk []byte
}

type request struct {
	permit Permit
	taken  time.Time
	left   bool // and told
	stale  bool // of before a Reset: its probe is not a probe any more
}

func newWorld(t *rapid.T) *world {
	limits := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) bucket.Limit {
		per := rapid.SampledFrom([]time.Duration{10 * time.Millisecond, time.Second, 7 * time.Second, time.Minute})
		return bucket.Limit{N: rapid.IntRange(1, 30).Draw(t, "n"), Per: per.Draw(t, "per")}
	}), 1, 3).Draw(t, "limits")
	p := Policy{
		Concurrency: rapid.IntRange(1, 20).Draw(t, "concurrency"), Limits: limits,
		Burst: rapid.IntRange(1, 30).Draw(t, "burst"),
		Breaker: breaker.Config{
			FailureThreshold: rapid.IntRange(1, 5).Draw(t, "threshold"),
			Cooldown:         time.Second, MaxCooldown: 10 * time.Second,
		},
	}
	return &world{Gate: New(p, start), policy: p, now: start}
}

func (w *world) pass(t *rapid.T) {
	scale := rapid.SampledFrom([]time.Duration{time.Microsecond, time.Millisecond, 100 * time.Millisecond, 5 * time.Second})
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "times")) * scale.Draw(t, "scale"))
}

// wait passes the time to when the gate says to ask again, or to a little later.
func (w *world) wait(t *rapid.T) {
	if at := w.Ask(w.now, len(w.open)).At; at.After(w.now) {
		w.now = at.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "late")) * time.Millisecond)
	}
}

// work is what happens most of the time: attempts begin, leave and end, and the receiver has a mood for a while.
func (w *world) work(t *rapid.T) {
	w.mood = rapid.SampledFrom([][]Kind{
		{Success}, {Failure}, {Failure, Neutral}, {Success, Failure, Cleared}, {Throttled, Neutral, Success},
	}).Draw(t, "mood")
	steps := []func(*rapid.T){w.begin, w.begin, w.leave, w.report, w.report, w.pass, w.wait}
	for range rapid.IntRange(10, 200).Draw(t, "steps") {
		steps[rapid.IntRange(0, len(steps)-1).Draw(t, "step")](t)
	}
}

// begin takes as much as there is, as a scheduler with a backlog does, or less.
func (w *world) begin(t *rapid.T) {
	for range rapid.IntRange(1, 10).Draw(t, "wanted") {
		d := w.Ask(w.now, len(w.open))
		if again := w.Ask(w.now, len(w.open)); again != d {
			t.Fatalf("asked twice: %+v, %+v", d, again)
		}
		if d.Reserve > 0 && rapid.IntRange(0, 9).Draw(t, "reserve at once") > 0 {
			w.disk = w.Reserve(d.Reserve, w.now)
			w.Reserved(d.Reserve, w.now)
			w.asked = 0
			d = w.Ask(w.now, len(w.open))
		}
		p, ok := w.Take(w.now, len(w.open))
		if ok != d.Allow || !d.At.IsZero() && !d.At.After(w.now) {
			t.Fatalf("taken %v at %v after %+v", ok, w.now, d)
		}
		if !ok {
			return
		}
		if p.Probe() && slices.ContainsFunc(w.open, func(r *request) bool { return r.permit.Probe() && !r.stale }) {
			t.Fatal("two probes at once")
		}
		w.open = append(w.open, &request{permit: p, taken: w.now})
	}
}

// really notes that the request left some time since its permit, unknown to the gate.
func (w *world) really(t *rapid.T, r *request) {
	since := int64(w.now.Sub(r.taken))
	w.leaves = append(w.leaves, r.taken.Add(time.Duration(rapid.Int64Range(0, since).Draw(t, "left at"))))
}

func (w *world) leave(t *rapid.T) {
	for _, r := range w.open {
		if !r.left && rapid.Bool().Draw(t, "leaves") {
			r.left = true
			w.Left(r.permit, w.now)
			w.leaves = append(w.leaves, w.now)
		}
	}
}

func (w *world) report(t *rapid.T) {
	w.open = slices.DeleteFunc(w.open, func(r *request) bool {
		if rapid.Bool().Draw(t, "goes on") {
			return false
		}
		o := Outcome{
			Kind:   rapid.SampledFrom(w.mood).Draw(t, "kind"),
			Wait:   time.Duration(rapid.IntRange(-1, 3).Draw(t, "wait")) * time.Second,
			Unsent: !r.left && rapid.Bool().Draw(t, "unsent"),
		}
		if !r.left && !o.Unsent {
			w.really(t, r)
		}
		if w.Report(r.permit, o, w.now) && rapid.Bool().Draw(t, "store") {
			w.store()
		}
		return true
	})
}

// store commits the state of now; a commit under way comes before it.
func (w *world) store() {
	if w.asked > 0 {
		w.commit()
	}
	w.disk = w.State()
}

// commit brings the reservation under way to the disk.
func (w *world) commit() {
	w.disk = w.askedDisk
	w.Reserved(w.asked, w.now)
	w.asked = 0
}

func (w *world) kill(t *rapid.T) {
	if w.asked > 0 && rapid.Bool().Draw(t, "the commit was done") {
		w.disk = w.askedDisk
	}
	w.asked = 0
	for _, r := range w.open {
		if !r.left && rapid.Bool().Draw(t, "left before the kill") {
			w.really(t, r)
		}
	}
	w.open = nil
	if rapid.Bool().Draw(t, "away for a while") {
		w.pass(t)
	}
	w.restore(t)
}

func (w *world) stop(t *rapid.T) {
	if len(w.open) > 0 {
		return
	}
	w.GiveBack()
	w.asked = 0
	w.disk = w.State()
	w.restore(t)
}

func (w *world) restore(t *rapid.T) {
	g, err := Restore(w.policy, w.disk, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.Gate = g
}

func (w *world) reset(*rapid.T) {
	w.Reset(w.now)
	for _, r := range w.open {
		r.stale = true
	}
}

func (w *world) reload(t *rapid.T) {
	w.policy.Burst = rapid.IntRange(1, 30).Draw(t, "burst")
	w.policy.Concurrency = rapid.IntRange(1, 20).Draw(t, "concurrency")
	w.SetPolicy(w.policy, w.now)
}

func (w *world) pauseAndResume(t *rapid.T) {
	w.Pause("model", w.now)
	w.pass(t)
	if _, ok := w.Take(w.now, 0); ok {
		t.Fatal("taken in a pause")
	}
	w.Resume(w.now)
}

// check looks at the recorded leaves alone: in any window of a limit's length at most that many.
func (w *world) check(t *rapid.T) {
	slices.SortFunc(w.leaves, time.Time.Compare)
	for _, l := range w.policy.Limits {
		for i := l.N; i < len(w.leaves); i++ {
			if d := w.leaves[i].Sub(w.leaves[i-l.N]); d <= l.Per {
				t.Fatalf("%d requests left within %v, the limit is %d in %v", l.N+1, d, l.N, l.Per)
			}
		}
	}
}

// TestAnyHistory: whatever happens in whatever order, no window holds more than its limit, there are never two probes,
// and in the end something is let through.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"work":      w.work,
			"work on":   w.work,
			"work more": w.work,
			"reserve": func(t *rapid.T) {
				w.asked = max(w.asked, rapid.IntRange(1, 10).Draw(t, "n"))
				w.askedDisk = w.Reserve(w.asked, w.now)
			},
			"commit": func(*rapid.T) {
				if w.asked > 0 {
					w.commit()
				}
			},
			"store":  func(*rapid.T) { w.store() },
			"kill":   w.kill,
			"stop":   w.stop,
			"reset":  w.reset,
			"reload": w.reload,
			"pause":  w.pauseAndResume,
			"":       w.check,
		})
		for _, r := range w.open {
			w.Report(r.permit, Outcome{Kind: Success}, w.now)
		}
		soon(t, w.Gate, w.now)
	})
}
