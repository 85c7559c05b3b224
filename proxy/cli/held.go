package cli

import (
	"context"
	"strings"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

// note says why an endpoint gets nothing at the moment, or what is wrong with it.
func (s *session) note(e client.Endpoint) term.Cell {
	text := stopped(e, s.now())
	if text == "" && e.TLSError != "" {
		text = "TLS files not usable: " + e.TLSError
	}
	if text == "" {
		text = lacks(e, s.now())
	}
	switch {
	case e.ShareFull:
		return term.Cell{Text: strings.TrimSuffix(shareFull+"; "+text, "; "), Color: term.Bad}
	case text != "":
		return term.Cell{Text: text, Color: term.Warn}
	}
	return term.Cell{}
}

// shareFull is said of an endpoint whose waiting events and dead letters leave no room for more.
const shareFull = "its share of the spool is full, new events get 503"

// heldBack says what keeps due events of an endpoint from leaving, in the words of note; empty where nothing does.
func heldBack(e client.Endpoint, now time.Time) string {
	if text := stopped(e, now); text != "" {
		return text
	}
	return lacks(e, now)
}

// stopped tells that nothing may leave for an endpoint before a moment, or before a person acts.
func stopped(e client.Endpoint, now time.Time) string {
	throttled := e.Limiter.ThrottledUntil
	switch {
	case e.Paused && strings.HasPrefix(e.PauseReason, "paused"):
		return e.PauseReason
	case e.Paused:
		return strings.TrimSuffix("paused: "+e.PauseReason, ": ")
	case e.Breaker.State == "open" && e.Breaker.OpenedAt != nil:
		if at := opensUntil(e.Breaker); at.After(now) {
			return "breaker open: next try " + term.When(at, now)
		}
		return "breaker open: next try now"
	case throttled != nil && throttled.After(now):
		return "throttled until " + term.When(*throttled, now)
	case !e.Configured && !strings.Contains(e.Name, "://"):
		return "not in the configuration any more"
	}
	return ""
}

// lacks says what an endpoint that is not stopped waits for, by the API's held_by, and until when where that is known.
func lacks(e client.Endpoint, now time.Time) string {
	text := waitsFor[e.Limiter.HeldBy]
	if at := e.Limiter.NextAllowedAt; text != "" && at != nil && at.After(now) {
		text += " until " + term.When(*at, now)
	}
	return text
}

// waitsFor are the words for each held_by that stopped does not tell.
var waitsFor = map[string]string{
	"probing":      "breaker half open: one attempt at a time tries it",
	"throttled":    "said 429: one attempt at a time tries it",
	"slots":        "waits for a slot: all of concurrency are taken (slots)",
	"concurrency":  "its own concurrency is used up",
	"rate_limited": "its limits are used up",
}

// opensUntil is when an open breaker lets the next attempt try.
func opensUntil(b client.Breaker) time.Time { return b.OpenedAt.Add(seconds(b.CooldownSeconds)) }

// isDue tells whether an event waits although its time has come.
func isDue(e client.Event, now time.Time) bool {
	return (e.State == "pending" || e.State == "failed") && !e.NextAttemptAt.IsZero() && !e.NextAttemptAt.After(now)
}

// holds asks what holds a due event back. What cannot be found out is left out: the event itself is what was asked for.
func (s *session) holds(ctx context.Context, admin *client.Admin, e client.Event) string {
	if !isDue(e, s.now()) {
		return ""
	}
	reply, err := admin.Endpoint(ctx, e.Endpoint)
	if err != nil {
		return ""
	}
	return heldBack(reply.Value, s.now())
}

// nextAttempt is when an event is sent next; one that waits beyond its time is due, which is no attempt in the past.
func nextAttempt(e client.Event, now time.Time) string {
	if isDue(e, now) {
		return "due since " + term.When(e.NextAttemptAt, now)
	}
	return term.When(e.NextAttemptAt, now)
}
