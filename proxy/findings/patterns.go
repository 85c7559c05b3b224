package findings

import (
	"fmt"
	"time"
)

// Pattern is one of the four shapes that dead letters are known to make.
type Pattern string

// The patterns. One endpoint can show several.
const (
	// Cluster is ClusterSize or more within any one hour: the endpoint was down for longer than its retries last.
	Cluster Pattern = "cluster"
	// Credentials is any 401 or 403: waiting does not mend them, one is enough to look.
	Credentials Pattern = "credentials"
	// Throttled is any 429 that outlived its retries: more is sent than the receiver takes.
	Throttled Pattern = "throttled"
	// Trickle is a few a day, evenly: see trickle for the definition.
	Trickle Pattern = "trickle"
)

// ClusterSize letters within an hour make a cluster; fewer than that a day can be a trickle.
const ClusterSize = 50

// Finding is one pattern that was seen.
type Finding struct {
	Pattern Pattern `json:"pattern"`
	// Count is how many letters make the pattern; for a cluster those of its densest hour.
	Count int `json:"count"`
	// Message says what was seen, Action what to do, both in a sentence or two.
	Message string `json:"message"`
	Action  string `json:"action"`
	// From and Until are the first and the last of those letters.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// SuggestedLimit is an entry for the endpoint's limits, where the traffic tells one (pattern throttled).
	SuggestedLimit string `json:"suggested_limit,omitempty"`
}

func (a *Accumulator) patterns(name string, t *tally) []Finding {
	found := make([]Finding, 0, 4)
	for _, look := range []func(string, *tally) (Finding, bool){a.cluster, a.credentials, a.throttled, a.trickle} {
		if f, ok := look(name, t); ok {
			found = append(found, f)
		}
	}
	return found
}

func finding(p Pattern, times []int64) Finding {
	return Finding{Pattern: p, Count: len(times), From: moment(times[0]), Until: moment(times[len(times)-1])}
}

func (a *Accumulator) cluster(name string, t *tally) (Finding, bool) {
	densest := densestHour(t.times)
	if len(densest) < ClusterSize {
		return Finding{}, false
	}
	f := finding(Cluster, densest)
	f.Message = fmt.Sprintf("%d events were given up within one hour, from %s.", f.Count, f.From.Format("2006-01-02 15:04 MST"))
	// Refusals by 401, 403 and 429 come in clusters too; more patience is no cure for those.
	patience := len(within(t.retried, densest[0], densest[len(densest)-1]))
	if 2*patience < f.Count {
		f.Action = fmt.Sprintf("Most of them were refused, not lost to an outage: mend the cause (%s), then replay: %s", t.cause(), replay(name))
		return f, true
	}
	f.Message += " The endpoint was down for longer than its retries last."
	f.Action = "Lengthen the retry window (more retry.max_attempts, a higher retry.max_delay, or a longer retry.schedule), then replay: " + replay(name)
	return f, true
}

// cause names the primary class for a sentence.
func (t *tally) cause() string {
	class, _ := t.primary()
	if class == "" {
		return "unknown"
	}
	return class
}

func (a *Accumulator) credentials(name string, t *tally) (Finding, bool) {
	if len(t.denied) == 0 {
		return Finding{}, false
	}
	f := finding(Credentials, t.denied)
	f.Message = events(f.Count) + " refused with 401 or 403: the receiver does not accept the credentials."
	f.Action = fmt.Sprintf("Renew the credentials (the application's Authorization, the endpoint's headers.set or sign.secrets), reset the breaker: postern endpoints reset %s, then replay: %s", name, replay(name))
	return f, true
}

func (a *Accumulator) throttled(name string, t *tally) (Finding, bool) {
	if len(t.limited) == 0 {
		return Finding{}, false
	}
	f := finding(Throttled, t.limited)
	f.Message = events(f.Count) + " given up after 429: more is sent than the receiver takes."
	if n := t.taken(); n > 0 {
		f.SuggestedLimit = fmt.Sprintf("%d/1m", n)
		f.Message += fmt.Sprintf(" In a typical minute in which it said 429 it took %d.", n)
		f.Action = fmt.Sprintf("Lower the endpoint's limits to %q, then replay slowly: %s --rate %s", f.SuggestedLimit, replay(name), perSecond(n))
		return f, true
	}
	f.Action = fmt.Sprintf("Set the endpoint's limits below what the receiver allows (its documentation says; the traffic here tells no number), then replay slowly: %s --rate 1", replay(name))
	return f, true
}

// perSecond is half of a limit per minute, so that a replay leaves room for new events.
func perSecond(perMinute int) string {
	rate := float64(perMinute) / 120
	if rate >= 10 {
		return fmt.Sprintf("%.0f", rate)
	}
	return fmt.Sprintf("%.2g", rate)
}

func events(n int) string {
	if n == 1 {
		return "1 event was"
	}
	return fmt.Sprintf("%d events were", n)
}

func replay(name string) string { return "postern dead-letters replay --endpoint " + name }
