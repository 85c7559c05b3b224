package admin

import (
	"net/http"
	"time"

	"postern/proxy/problem"
	"postern/proxy/redact"
	"postern/spool"
)

// refusedJSON is a row that the central store refused, with what it said.
type refusedJSON struct {
	EventID   string     `json:"event_id"`
	Endpoint  string     `json:"endpoint"`
	State     *string    `json:"state"`   // null where a person deleted the event
	Attempt   *int       `json:"attempt"` // null where the row is about none
	Cause     string     `json:"cause"`
	RefusedAt *time.Time `json:"refused_at"`
}

var errNoSync = refusal{problem.Problem{Status: 409, Slug: "no-sync", Title: "There is no sync",
	Detail: "This Postern reports to no Postgres: set sync.dsn (or POSTERN_SYNC_DSN) and start it again."}}

func (h *Handler) listRefused(r *http.Request) (reply, error) {
	params, err := parameters(r, "limit")
	if err != nil {
		return reply{}, err
	}
	limit, err := params.number("limit", defaultLimit, maxLimit)
	if err != nil {
		return reply{}, err
	}
	var rows []spool.RefusedRow
	total := 0
	if h.parts.Refused != nil {
		if rows, total, err = h.parts.Refused.Refused(limit); err != nil {
			return reply{}, err
		}
	}
	out := make([]refusedJSON, 0, len(rows))
	for i := range rows {
		out = append(out, refused(&rows[i]))
	}
	return reply{body: struct {
		Refused []refusedJSON `json:"refused"`
		Total   int           `json:"total"`
	}{out, total}}, nil
}

func refused(row *spool.RefusedRow) refusedJSON {
	out := refusedJSON{EventID: row.EventID, Endpoint: row.Endpoint, Cause: redact.Text(row.Cause), RefusedAt: stamp(row.At)}
	if row.State != 0 {
		state := row.State.String()
		out.State = &state
	}
	if row.Attempt != nil {
		out.Attempt = &row.Attempt.Number
	}
	return out
}

func (h *Handler) retryRefused(r *http.Request) (reply, error) {
	if _, err := parameters(r); err != nil {
		return reply{}, err
	}
	if h.parts.Refused == nil {
		return reply{}, errNoSync
	}
	n, err := h.parts.Refused.RetryRefused()
	if err != nil {
		return reply{}, err
	}
	h.parts.Logger.Info("rows that Postgres had refused were put back by hand", "rows", n, "remote", r.RemoteAddr)
	return reply{body: struct {
		Retried int `json:"retried"`
	}{n}}, nil
}
