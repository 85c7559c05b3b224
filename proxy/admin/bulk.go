package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"postern/spool"
)

// bulkBody is the JSON body of replay and purge.
type bulkBody struct {
	filter
	// IDs selects these alone; those that are no dead letters are passed over. The other filters stay away then.
	IDs    []string        `json:"ids"`
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
	// Since and Until are there for a dry run: who sends them along gets what was counted, and nothing that died after.
	Since *time.Time `json:"since,omitempty"`
	Until *time.Time `json:"until,omitempty"`
}

// selection is what a body selects.
type selection struct {
	body    bulkBody
	query   spool.Query
	ids     []string
	counted time.Time // after the last of them died, and before any other does
}

// dryRun is the answer where nothing is to be done.
func (s selection) dryRun() bulkJSON {
	until := s.query.Until
	if until.IsZero() {
		until = s.counted
	}
	return bulkJSON{Matched: len(s.ids), DryRun: true, Since: stamp(s.query.Since), Until: stamp(until)}
}

func (h *Handler) replay(r *http.Request) (reply, error) {
	s, err := h.selected(r)
	if err != nil {
		return reply{}, err
	}
	rate, err := eventRate(s.body.Rate)
	if err != nil {
		return reply{}, err
	}
	switch {
	case s.body.DryRun:
		answer := s.dryRun()
		answer.Replayed = new(int)
		return reply{body: answer}, nil
	case rate > 0:
		return h.startReplay(r, s.ids, rate)
	}
	done, err := h.bulk(r, "replayed", s.ids, h.parts.Spool.RetryDead)
	return reply{body: bulkJSON{Matched: len(s.ids), Replayed: &done}}, err
}

func (h *Handler) purge(r *http.Request) (reply, error) {
	s, err := h.selected(r)
	if err != nil {
		return reply{}, err
	}
	if s.body.Rate != nil {
		return reply{}, badRequest("rate: a purge takes none; it sends nothing.")
	}
	if s.body.DryRun {
		answer := s.dryRun()
		answer.Purged = new(int)
		return reply{body: answer}, nil
	}
	done, err := h.bulk(r, "purged", s.ids, h.parts.Spool.DeleteDead)
	return reply{body: bulkJSON{Matched: len(s.ids), Purged: &done}}, err
}

// selected reads the body and collects the IDs it selects before anything is changed: what dies again during a replay
// is not replayed twice.
func (h *Handler) selected(r *http.Request) (s selection, err error) {
	if _, err := parameters(r); err != nil {
		return s, err
	}
	if err := readBody(r, &s.body); err != nil {
		return s, err
	}
	s.counted = time.Now()
	if s.body.IDs != nil {
		return s, h.choose(&s)
	}
	if s.query, err = s.body.query(s.counted); err != nil {
		return s, err
	}
	err = h.parts.Spool.DeadLetters(s.query, func(v spool.View) bool {
		s.ids = append(s.ids, v.ID)
		if !v.DeadAt.Before(s.counted) { // the clock was set back
			s.counted = v.DeadAt.Add(time.Microsecond)
		}
		return r.Context().Err() == nil
	})
	return s, errors.Join(err, r.Context().Err())
}

// choose selects by IDs, each once.
func (h *Handler) choose(s *selection) error {
	if s.body.filter != (filter{}) {
		return badRequest("ids: given beside other filters; select by one or by the others.")
	}
	if n := len(s.body.IDs); n == 0 || n > maxLimit {
		return badRequest("ids: must have from 1 to %d event IDs.", maxLimit)
	}
	chosen := make(map[string]bool, len(s.body.IDs))
	for _, id := range s.body.IDs {
		v, err := h.parts.Spool.Get(id, false)
		switch {
		case errors.Is(err, spool.ErrNotFound) || chosen[id]:
			continue
		case err != nil:
			return err
		}
		if chosen[id] = true; v.State == spool.StateDeadLetter {
			s.ids = append(s.ids, id)
		}
	}
	return nil
}

// bulk acts on all of ids now, for as long as the client and Postern are there.
func (h *Handler) bulk(r *http.Request, done string, ids []string, act func(context.Context, string) error) (int, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	n, err := each(ctx, ids, act)
	h.parts.Logger.Info("dead letters were "+done+" by hand", "matched", len(ids), "done", n, "remote", r.RemoteAddr)
	if err == nil {
		return n, nil
	}
	answer := h.problem(r, err)
	answer.Detail += " " + strconv.Itoa(n) + " of " + strconv.Itoa(len(ids)) + " dead letters were " + done + " before that; the others are as they were."
	return n, refusal{answer}
}
