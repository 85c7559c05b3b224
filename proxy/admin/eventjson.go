package admin

import (
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"postern/proxy/target"
	"postern/spool"
)

// eventJSON is an event as every list shows it: no query, no user info, no header, no body, and of an ad hoc target
// not even the path.
type eventJSON struct {
	ID           string     `json:"id"`
	Endpoint     string     `json:"endpoint"`
	State        string     `json:"state"`
	Method       string     `json:"method"`
	URL          string     `json:"url"` // of the endpoint, or the origin of an ad hoc target
	AttemptCount int        `json:"attempt_count"`
	Charged      int        `json:"charged_attempts"` // of max_attempts; retry and replay start it anew
	MaxAttempts  *int       `json:"max_attempts"`     // null where the endpoint left the configuration
	AcceptedAt   *time.Time `json:"accepted_at"`
	NextAttempt  *time.Time `json:"next_attempt_at"` // null in flight and after the last attempt
	DeliveredAt  *time.Time `json:"delivered_at"`
	DeadAt       *time.Time `json:"dead_at"`
	DeadReason   *string    `json:"dead_reason"`
	LastError    *string    `json:"last_error"`
	LastStatus   *int       `json:"last_status_code"`
	Size         int64      `json:"size"` // bytes of body
}

// detailJSON is GET events/{id}.
type detailJSON struct {
	eventJSON
	Attempts []attemptJSON `json:"attempts"` // the first and the last 20
}

type attemptJSON struct {
	Number     int        `json:"number"`
	StartedAt  *time.Time `json:"started_at"`
	Duration   float64    `json:"duration_ms"`
	StatusCode *int       `json:"status_code"` // null where no response headers came
	Error      *string    `json:"error"`       // null where it delivered
}

// revealedJSON is GET events/{id}?reveal=1.
type revealedJSON struct {
	detailJSON
	payload
}

type payload struct {
	// Target is the whole address, or for a named endpoint what follows its url.
	Target  string       `json:"target"`
	Headers []headerJSON `json:"headers"`
	// Body is null where the payload has left the spool. BodyEncoding is utf-8 or base64, for bytes that are no text.
	Body         *string     `json:"body"`
	BodyEncoding *string     `json:"body_encoding"`
	Answer       *answerJSON `json:"answer"` // of the last failed attempt
}

type headerJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type answerJSON struct {
	StatusCode   int     `json:"status_code"`
	Location     *string `json:"location"`
	Body         *string `json:"body"` // at most the first 1 KiB
	BodyEncoding *string `json:"body_encoding"`
}

func (h *Handler) event(v *spool.View) eventJSON {
	policy, known := Policy{}, false
	if h.parts.Policies != nil {
		policy, known = h.parts.Policies(v.Endpoint)
	}
	out := eventJSON{
		ID:           v.ID,
		Endpoint:     v.Endpoint,
		State:        v.State.String(),
		Method:       v.Method,
		URL:          shownURL(v, policy.URL),
		AttemptCount: v.Progress.Attempts,
		Charged:      v.Charged,
		MaxAttempts:  orNull(v.MaxAttempts),
		AcceptedAt:   stamp(v.AcceptedAt),
		DeliveredAt:  stamp(v.DeliveredAt),
		Size:         v.Size,
	}
	if v.State == spool.StateDeadLetter { // a replayed event may still have them
		out.DeadAt, out.DeadReason = stamp(v.DeadAt), orNull(v.DeadReason)
	}
	if known && out.MaxAttempts == nil {
		out.MaxAttempts = orNull(policy.MaxAttempts)
	}
	if v.State == spool.StatePending || v.State == spool.StateFailed {
		out.NextAttempt = stamp(v.NextAttempt)
	}
	if n := len(v.History); n > 0 {
		out.LastError, out.LastStatus = orNull(v.History[n-1].Error), orNull(v.History[n-1].StatusCode)
	}
	return out
}

// shownURL never shows anything that the application put together: for an endpoint by name it is the configured url,
// for a target in full its origin.
func shownURL(v *spool.View, configured string) string {
	if v.Named {
		return configured
	}
	if t, err := target.Parse(v.Target); err == nil {
		return t.Origin()
	}
	if strings.Contains(v.Endpoint, "://") {
		return v.Endpoint // the target of a delivered event has left the spool
	}
	return configured
}

func attempts(history []spool.Attempt) []attemptJSON {
	out := make([]attemptJSON, 0, len(history))
	for _, a := range history {
		out = append(out, attemptJSON{a.Number, stamp(a.StartedAt), milliseconds(a.Duration), orNull(a.StatusCode), orNull(a.Error)})
	}
	return out
}

func revealed(v *spool.View) payload {
	out := payload{Target: v.Target, Headers: make([]headerJSON, 0, len(v.Headers))}
	for _, field := range v.Headers {
		out.Headers = append(out.Headers, headerJSON(field))
	}
	if v.State != spool.StateDelivered {
		out.Body, out.BodyEncoding = text(v.Body)
	}
	if v.Answer != nil {
		out.Answer = &answerJSON{StatusCode: v.Answer.StatusCode, Location: orNull(v.Answer.Location)}
		out.Answer.Body, out.Answer.BodyEncoding = text(v.Answer.Body)
	}
	return out
}

// text puts bytes into JSON: as they are where they are UTF-8, else as base64, and says which.
func text(raw []byte) (shown, encoding *string) {
	s, e := string(raw), "utf-8"
	if !utf8.Valid(raw) {
		s, e = base64.StdEncoding.EncodeToString(raw), "base64"
	}
	return &s, &e
}
