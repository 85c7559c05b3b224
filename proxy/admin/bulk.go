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
	done, err := h.bulk(r, "replayed", ids, h.parts.Spool.RetryDead)
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
	done, err := h.bulk(r, "purged", ids, h.parts.Spool.DeleteDead)
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
