package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"net/http"
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

// startReplay runs a replay in the background and answers at once.
func (h *Handler) startReplay(r *http.Request, ids []string, rate float64) (reply, error) {
	ctx, stop := context.WithCancel(h.ctx)
	job := &pacedReplay{
		ID: "rpl_" + rand.Text(), State: "running", Matched: len(ids), Rate: rate, StartedAt: stamp(time.Now()), stop: stop,
	}
	if err := h.replays.add(job); err != nil {
		stop()
		return reply{}, err
	}
	h.parts.Logger.Info("a paced replay of dead letters was started by hand", "replay", job.ID, "matched", len(ids), "rate", rate, "remote", r.RemoteAddr)
	go h.pace(ctx, job, ids)
	none := 0
	return reply{
		status:   http.StatusAccepted,
		location: api + "dead-letters/replays/" + job.ID,
		body:     bulkJSON{Matched: len(ids), Replayed: &none, Started: true, ID: job.ID},
	}, nil
}

// pace replays ids at the job's rate: each time it wakes, as many as the time since the start allows.
func (h *Handler) pace(ctx context.Context, job *pacedReplay, ids []string) {
	defer h.replays.running.Done()
	defer job.stop()
	start, next := time.Now(), 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	var err error
	for next < len(ids) && err == nil {
		select {
		case <-ctx.Done():
			err = ctx.Err()
			continue
		case <-timer.C:
		}
		// The next one is due, since the timer went off; others are where the rate is high or the disk was slow.
		allowed := min(max(next, int(time.Since(start).Seconds()*job.Rate))+1, len(ids), next+together)
		var done int
		done, err = h.each(ctx, ids[next:allowed], h.parts.Spool.Retry)
		h.replays.progress(job, done, allowed-next-done, err)
		next = allowed
		timer.Reset(time.Until(start.Add(time.Duration(math.Ceil(float64(next) / job.Rate * float64(time.Second))))))
	}
	h.replays.finish(job, err)
	h.parts.Logger.Info("a paced replay of dead letters ended", "replay", job.ID, "state", job.State, "matched", job.Matched, "done", job.Replayed)
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

func (h *Handler) listReplays(r *http.Request) (reply, error) {
	if _, err := parameters(r); err != nil {
		return reply{}, err
	}
	return reply{body: struct {
		Replays []pacedReplay `json:"replays"`
	}{h.replays.show(func(*pacedReplay) bool { return true })}}, nil
}

func (h *Handler) showReplay(r *http.Request) (reply, error) {
	found := h.replays.show(func(job *pacedReplay) bool { return job.ID == r.PathValue("id") })
	if len(found) == 0 {
		return reply{}, notFound("There is no such replay. The last 20 can be asked about, and none from before a restart.")
	}
	return reply{body: found[0]}, nil
}

func (h *Handler) stopReplay(r *http.Request) (reply, error) {
	answer, err := h.showReplay(r)
	if err == nil {
		job := answer.body.(pacedReplay)
		job.stop()
		answer.status = http.StatusAccepted
	}
	return answer, err
}
