package breaker

import "time"

// State is the breaker's state. Its words are the contract's.
type State uint8

// The states. The numbers are stored and must not change.
const (
	Closed   State = iota // all is well
	HalfOpen              // the cooldown is over: one probe at a time
	Open                  // nothing is sent
)

// String returns the word for the state: closed, half_open or open.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case HalfOpen:
		return "half_open"
	case Open:
		return "open"
	default:
		return "unknown"
	}
}

// Result is how an attempt that the breaker allowed has ended.
type Result uint8

// The results.
const (
	Undecided Result = iota // says nothing about the endpoint: a failure of our own, or a 429
	Success                 // 2xx
	Cleared                 // an answer that is no failure of the endpoint, such as another 4xx
	Failure                 // adds one to the counter
)

// Ticket marks one allowed attempt: in which era of the breaker it began, and whether it is the probe.
type Ticket struct {
	Era   uint64
	Probe bool
}

// Breaker is one endpoint's breaker. The zero value is not usable: see New.
type Breaker struct {
	config Config
	state  State
	// failures counts consecutive failures. It goes on counting through failed probes.
	failures int
	// failedProbes counts the probes that failed since the breaker left closed; it gives the cooldown.
	failedProbes int
	openedAt     time.Time
	// slots bounds concurrency while it grows again after closing; zero is no bound of the breaker's.
	slots int
	// era counts the changes of state. Tickets of an earlier one are void.
	era uint64
	// probing is true while a probe is out.
	probing bool
	// p95 is the latency of the endpoint, of that many samples.
	p95     time.Duration
	samples int
}

// New returns a closed breaker.
func New(c Config) Breaker { return Breaker{config: c} }

// SetConfig puts another configuration in force. State and counts stay; the cooldown under way is measured anew.
func (b *Breaker) SetConfig(c Config) { b.config = c }

// SetLatency tells the endpoint's 95th percentile and how many samples it is of. A threshold that falls with it below
// the failures counted opens the breaker at the next failure, not before.
func (b *Breaker) SetLatency(p95 time.Duration, samples int) { b.p95, b.samples = p95, samples }

// Ask tells whether an attempt may begin: ok, or until when the breaker stays open. A zero time with !ok means that a
// probe is out, and that its result is to be waited for. Ask changes nothing.
func (b *Breaker) Ask(now time.Time) (until time.Time, ok bool) {
	switch b.State(now) {
	case Open:
		return b.openedAt.Add(b.Cooldown()), false
	case HalfOpen:
		return time.Time{}, !b.probing
	default:
		return time.Time{}, true
	}
}

// Take begins an attempt that Ask allowed at the same time.
func (b *Breaker) Take(now time.Time) Ticket {
	if b.State(now) != HalfOpen {
		return Ticket{Era: b.era}
	}
	if b.state == Open {
		b.enter(HalfOpen)
	}
	b.probing = true
	return Ticket{Era: b.era, Probe: true}
}

// Report ends an attempt. It must be called exactly once for each ticket. It tells whether anything changed that a
// restart should remember.
func (b *Breaker) Report(t Ticket, r Result, now time.Time) (changed bool) {
	if t.Era != b.era {
		return false
	}
	if t.Probe {
		return b.probed(r, now)
	}
	switch r {
	case Failure:
		b.failures++
		if b.failures >= b.Threshold() {
			b.open(now)
		}
		return true
	case Success, Cleared:
		changed = b.failures != 0
		b.failures = 0
		return b.grow(r) || changed
	default:
		return false
	}
}

// probed draws the conclusion from a probe.
func (b *Breaker) probed(r Result, now time.Time) bool {
	b.probing = false
	switch r {
	case Failure:
		b.failures++
		b.failedProbes++
		b.open(now)
		return true
	case Success, Cleared:
		b.close()
		return true
	default:
		return false
	}
}

// Reset closes the breaker by hand and brings the cooldown back to its start. Attempts under way no longer count. A
// breaker that was not closed lets concurrency grow from 1, as after a good probe.
func (b *Breaker) Reset() {
	slots := b.slots
	wasClosed := b.state == Closed
	b.close()
	if wasClosed {
		b.slots = slots
	}
}

func (b *Breaker) open(now time.Time) {
	b.openedAt = now
	b.slots = 0
	b.enter(Open)
}

func (b *Breaker) close() {
	b.failures, b.failedProbes = 0, 0
	b.openedAt = time.Time{}
	b.slots = 1
	b.enter(Closed)
}

// enter changes the state and begins a new era. A probe of the old one is forgotten, so its loss cannot wedge us.
func (b *Breaker) enter(s State) {
	b.state = s
	b.probing = false
	b.era++
}

// grow adds a slot for a success while concurrency is still growing.
func (b *Breaker) grow(r Result) bool {
	if b.slots == 0 || r != Success {
		return false
	}
	b.slots++
	return true
}
