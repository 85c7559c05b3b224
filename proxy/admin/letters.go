package admin

import (
	"cmp"
	"net/http"
	"time"

	"postern/proxy/findings"
	"postern/spool"
)

func (h *Handler) listLetters(r *http.Request) (reply, error) {
	q, err := letterQuery(r, time.Now())
	if err != nil {
		return reply{}, err
	}
	page, err := h.parts.Spool.List(q)
	if err != nil {
		return reply{}, err
	}
	return reply{body: struct {
		DeadLetters []eventJSON `json:"dead_letters"`
		Next        *string     `json:"next_cursor"`
	}{h.events(page.Events), orNull(page.Next)}}, nil
}

func (h *Handler) analysis(r *http.Request) (reply, error) {
	params, err := parameters(r, "hours")
	if err != nil {
		return reply{}, err
	}
	hours, err := params.number("hours", defaultHours, maxHours)
	if err != nil {
		return reply{}, err
	}
	until := time.Now()
	since := until.Add(-time.Duration(hours) * time.Hour)
	acc := findings.New(since, until)
	throttled := false
	err = h.parts.Spool.DeadLetters(spool.Query{State: spool.StateDeadLetter, Since: since, Until: until}, func(v spool.View) bool {
		letter := letterOf(&v)
		throttled = throttled || letter.StatusCode == http.StatusTooManyRequests
		acc.Add(letter)
		return r.Context().Err() == nil
	})
	if err == nil && throttled && h.parts.Answers != nil {
		err = h.parts.Answers(since, func(endpoint string, at time.Time, statusCode int) bool {
			acc.Answer(endpoint, at, statusCode)
			return r.Context().Err() == nil
		})
	}
	if err := cmp.Or(err, r.Context().Err()); err != nil {
		return reply{}, err
	}
	return reply{body: struct {
		Hours     int                 `json:"hours"`
		Since     *time.Time          `json:"since"`
		Until     *time.Time          `json:"until"`
		Endpoints []findings.Analysis `json:"endpoints"`
	}{hours, stamp(since), stamp(until), acc.Result()}}, nil
}

// letterOf takes what the analysis looks at. An event that expired before any attempt has no class: its reason stands
// in for it.
func letterOf(v *spool.View) findings.Letter {
	letter := findings.Letter{Endpoint: v.Endpoint, DeadAt: v.DeadAt, Error: v.DeadReason, Attempts: v.Progress.Attempts}
	if n := len(v.History); n > 0 {
		letter.StatusCode = v.History[n-1].StatusCode
		letter.Error = cmp.Or(v.History[n-1].Error, v.DeadReason)
	}
	return letter
}
