package admin

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"postern/proxy/problem"
	"postern/spool"
)

const (
	// maxRunning paced replays at once; more would make nonsense of their rates.
	maxRunning = 4
	// keptReplays finished ones can still be asked about.
	keptReplays = 20
)

// replays is the paced ones, oldest first.
type replays struct {
	running sync.WaitGroup
	mu      sync.Mutex // guards list, closed and what is behind each entry
	list    []*pacedReplay
	closed  bool
}

func newReplays() *replays { return &replays{} }

var errTooMany = refusal{problem.Problem{Status: 409, Slug: "too-many-replays", Title: "Too many replays are running",
	Detail: "Wait until one has ended, or stop one: GET " + api + "dead-letters/replays lists them, DELETE stops."}}

// pacedReplay is one. Its JSON is the progress that GET dead-letters/replays/{id} shows.
type pacedReplay struct {
	ID       string  `json:"id"`
	State    string  `json:"state"` // running, done, stopped, failed
	Matched  int     `json:"matched"`
	Replayed int     `json:"replayed"`
	Skipped  int     `json:"skipped"` // were no dead letters any more when their turn came
	Rate     float64 `json:"rate"`    // events per second
	// StartedAt and FinishedAt are UTC; FinishedAt is null while it runs. Error says why one failed.
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Error      *string    `json:"error"`

	stop context.CancelFunc
}

// add refuses when too many run, or none may any more. It drops the oldest finished ones beyond keptReplays.
func (p *replays) add(job *pacedReplay) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	running := 0
	for _, other := range p.list {
		if other.FinishedAt == nil {
			running++
		}
	}
	switch {
	case p.closed:
		return spool.ErrClosed
	case running >= maxRunning:
		return errTooMany
	}
	p.running.Add(1)
	p.list = append(p.list, job)
	for i := 0; len(p.list) > keptReplays+running && i < len(p.list); {
		if p.list[i].FinishedAt == nil {
			i++
			continue
		}
		p.list = slices.Delete(p.list, i, i+1)
	}
	return nil
}

func (p *replays) progress(job *pacedReplay, done, skipped int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	job.Replayed += done
	if err == nil { // after an error the rest was not reached, which is not skipping
		job.Skipped += skipped
	}
}

func (p *replays) finish(job *pacedReplay, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	job.FinishedAt = stamp(time.Now())
	switch {
	case err == nil:
		job.State = "done"
	case errors.Is(err, context.Canceled):
		job.State = "stopped"
	default:
		job.State = "failed"
		detail := "The spool could not do it; the reason is in Postern's log."
		if answer, ok := lookUp(err); ok {
			detail = answer.Detail
		}
		job.Error = &detail
	}
}

// show copies what match selects, newest first.
func (p *replays) show(match func(*pacedReplay) bool) []pacedReplay {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]pacedReplay, 0, len(p.list))
	for _, job := range slices.Backward(p.list) {
		if match(job) {
			out = append(out, *job)
		}
	}
	return out
}

// wait ends when the last one has; none starts after it.
func (p *replays) wait() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.running.Wait()
}
