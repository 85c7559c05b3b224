package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"postern/proxy/problem"
	"postern/spool"
)

// bulkBody is the JSON body of replay and purge.
type bulkBody struct {
	filter
	DryRun bool            `json:"dry_run"`
	Rate   json.RawMessage `json:"rate"`
}

// bulkJSON is the answer. Matched minus replayed (or purged) are those that were no dead letters any more.
type bulkJSON struct {
	Matched  int    `json:"matched"`
	Replayed *int   `json:"replayed,omitempty"`
	Purged   *int   `json:"purged,omitempty"`
	DryRun   bool   `json:"dry_run"`
	Started  bool   `json:"started,omitempty"` // in the background, under this ID
	ID       string `json:"id,omitempty"`
}

func (h *Handler) replay(r *http.Request) (reply, error) {
	body, ids, err := h.selected(r)
	if err != nil {
		return reply{}, err
	}
	rate, err := eventRate(body.Rate)
	if err != nil {
		return reply{}, err
	}
	none := 0
	switch {
	case body.DryRun:
		return reply{body: bulkJSON{Matched: len(ids), Replayed: &none, DryRun: true}}, nil
	case rate > 0:
		return h.startReplay(r, ids, rate)
	}
	done, err := h.bulk(r, "replayed", ids, h.parts.Spool.Retry)
	return reply{body: bulkJSON{Matched: len(ids), Replayed: &done}}, err
}

func (h *Handler) purge(r *http.Request) (reply, error) {
	body, ids, err := h.selected(r)
	if err != nil {
		return reply{}, err
	}
	if body.Rate != nil {
		return reply{}, badRequest("rate: a purge takes none; it sends nothing.")
	}
	none := 0
	if body.DryRun {
		return reply{body: bulkJSON{Matched: len(ids), Purged: &none, DryRun: true}}, nil
	}
	done, err := h.bulk(r, "purged", ids, h.parts.Spool.Delete)
	return reply{body: bulkJSON{Matched: len(ids), Purged: &done}}, err
}

// selected reads the body and collects the IDs it selects before anything is changed: what dies again during a replay
// is not replayed twice.
func (h *Handler) selected(r *http.Request) (body bulkBody, ids []string, err error) {
	if _, err := parameters(r); err != nil {
		return body, nil, err
	}
	if err := readBody(r, &body); err != nil {
		return body, nil, err
	}
	q, err := body.query(time.Now())
	if err != nil {
		return body, nil, err
	}
	err = h.parts.Spool.DeadLetters(q, func(v spool.View) bool {
		ids = append(ids, v.ID)
		return r.Context().Err() == nil
	})
	return body, ids, errors.Join(err, r.Context().Err())
}

// readBody is strict: a misspelt filter would select everything. An empty body is refused for the same reason; {} says
// that everything is meant.
func readBody(r *http.Request, into *bulkBody) error {
	raw, err := io.ReadAll(r.Body)
	if _, tooBig := errors.AsType[*http.MaxBytesError](err); tooBig {
		return refusal{problem.Problem{Status: 413, Slug: "too-large", Title: "The body is too large", Detail: "This call takes a small JSON object."}}
	}
	if err != nil {
		return badRequest("The body could not be read.")
	}
	const takes = "This call takes a JSON object with any of endpoint, status, error, since, until, dry_run and, for a replay, rate; {} selects all dead letters."
	if len(bytes.TrimSpace(raw)) == 0 {
		return badRequest("The body is empty. " + takes)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mistyped.Field != "" {
			return badRequest("%s: has the wrong JSON type. "+takes, mistyped.Field)
		}
		return badRequest("The body is not JSON, or has a field that this call does not take. " + takes)
	}
	if _, err := dec.Token(); err != io.EOF {
		return badRequest("Something follows the JSON object. " + takes)
	}
	return nil
}

// Bounds of a paced replay, in events per second: one in three hours, and more than one disk commits.
const (
	minRate = 0.0001
	maxRate = 100_000
)

// eventRate reads events per second, as a number or as a limit is written: "100/1m". Zero means that none is given.
func eventRate(raw json.RawMessage) (float64, error) {
	text := string(raw)
	if text == "" || text == "null" {
		return 0, nil
	}
	rate, err := strconv.ParseFloat(text, 64)
	if quoted := ""; json.Unmarshal(raw, &quoted) == nil {
		rate, err = parseRate(quoted)
	}
	if err != nil || !(rate >= minRate && rate <= maxRate) {
		return 0, badRequest(`rate: must be events per second, as a number (2.5) or as "100/1m", from %v to %v a second; leave it out to replay at once.`, minRate, maxRate)
	}
	return rate, nil
}

func parseRate(text string) (float64, error) {
	events, window, ok := strings.Cut(text, "/")
	if !ok {
		return strconv.ParseFloat(text, 64)
	}
	n, err := strconv.ParseUint(events, 10, 32)
	if err != nil {
		return 0, err
	}
	per, err := time.ParseDuration(window)
	if err != nil || per <= 0 {
		return 0, errors.New("not a duration")
	}
	return float64(n) / per.Seconds(), nil
}

// bulk acts on all of ids now, for as long as the client and Postern are there.
func (h *Handler) bulk(r *http.Request, done string, ids []string, act func(context.Context, string) error) (int, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	n, err := h.each(ctx, ids, act)
	h.parts.Logger.Info("dead letters were "+done+" by hand", "matched", len(ids), "done", n, "remote", r.RemoteAddr)
	if err == nil {
		return n, nil
	}
	answer := h.problem(r, err)
	answer.Detail += " " + strconv.Itoa(n) + " of " + strconv.Itoa(len(ids)) + " dead letters were " + done + " before that; the others are as they were."
	return n, refusal{answer}
}

// together is how many changes are asked for at once. The spool gathers what waits into one commit, so that together
// they take little longer than one.
const together = 64

// each acts on every ID that is still a dead letter, several at a time, and counts. The first error that is not about a
// single event ends it.
func (h *Handler) each(ctx context.Context, ids []string, act func(context.Context, string) error) (done int, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex // guards done
	var wg sync.WaitGroup
	queue := make(chan string)
	for range min(together, len(ids)) {
		wg.Go(func() {
			for id := range queue {
				switch err := h.ifDead(ctx, id, act); {
				case err == nil:
					mu.Lock()
					done++
					mu.Unlock()
				case !aboutOne(err):
					stop(err)
				}
			}
		})
	}
feed:
	for _, id := range ids {
		select {
		case queue <- id:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	wg.Wait()
	return done, context.Cause(ctx)
}

// ifDead looks again just before it acts: somebody else may have replayed the event since it was selected, and a live
// one must be neither purged nor given a new budget.
func (h *Handler) ifDead(ctx context.Context, id string, act func(context.Context, string) error) error {
	view, err := h.parts.Spool.Get(id, false)
	if err != nil {
		return err
	}
	if view.State != spool.StateDeadLetter {
		return spool.ErrBusy
	}
	return act(ctx, id)
}

// aboutOne tells an error that concerns one event and not its neighbours.
func aboutOne(err error) bool {
	return errors.Is(err, spool.ErrNotFound) || errors.Is(err, spool.ErrBusy) || errors.Is(err, spool.ErrDelivered)
}
