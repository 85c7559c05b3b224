package admin

import (
	"context"
	"crypto/rand"
	"math"
	"net/http"
	"time"
)

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
		done, err = each(ctx, ids[next:allowed], h.parts.Spool.RetryDead)
		h.replays.progress(job, done, allowed-next-done, err)
		next = allowed
		timer.Reset(time.Until(start.Add(time.Duration(math.Ceil(float64(next) / job.Rate * float64(time.Second))))))
	}
	h.replays.finish(job, err)
	h.parts.Logger.Info("a paced replay of dead letters ended", "replay", job.ID, "state", job.State, "matched", job.Matched, "done", job.Replayed)
}

func (h *Handler) listReplays(r *http.Request) (reply, error) {
	if _, err := parameters(r); err != nil {
		return reply{}, err
	}
	return reply{body: h.replaysNow()}, nil
}

// replayList is GET dead-letters/replays.
type replayList struct {
	Replays []pacedReplay `json:"replays"`
}

func (h *Handler) replaysNow() replayList {
	return replayList{h.replays.show(func(*pacedReplay) bool { return true })}
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
