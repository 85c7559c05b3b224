package ingest

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"postern/spool"
)

// maxAhead bounds delays and TTLs. Nobody means more, and sums with a time stay far from overflow.
const maxAhead = 10 * 365 * 24 * time.Hour

// steer reads the control headers into the event, whose AcceptedAt is now. Durations are Go's (90s, 1h30m) or whole
// seconds as a bare number, as with Retry-After.
func steer(ev *spool.Event, header http.Header, ep Endpoint) *refusal {
	c := controls{header: header}
	if id, ok := c.one("Postern-Event-Id"); ok {
		if !validID(id) {
			c.bad("Postern-Event-Id", "it must be 1 to 128 characters of A-Z a-z 0-9 . _ : -")
		}
		ev.ID, ev.ExplicitID = id, true
	}
	c.notBefore(ev)
	ev.TTL = c.duration("Postern-Ttl", maxAhead)
	c.overrides(ev, ep)
	return c.refusal
}

// controls reads headers until one of them is not valid; the first fault is kept.
type controls struct {
	header  http.Header
	refusal *refusal
}

func (c *controls) bad(name, what string) {
	if c.refusal == nil {
		c.refusal = headerRefusal(name, what)
	}
}

// one gives the header's single value; ok is false where the header is absent.
func (c *controls) one(name string) (value string, ok bool) {
	values := c.header[name]
	if len(values) > 1 {
		c.bad(name, "it is given more than once")
	}
	if len(values) == 0 {
		return "", false
	}
	return strings.Trim(values[0], " \t"), true
}

// duration reads a header that must be above zero and not above most; zero where it is absent.
func (c *controls) duration(name string, most time.Duration) time.Duration {
	text, ok := c.one(name)
	if !ok {
		return 0
	}
	d, ok := parseDuration(text)
	switch {
	case !ok || d < 0:
		c.bad(name, "it must be a duration such as 90s, 5m or 1h30m, or whole seconds")
	case d == 0:
		c.bad(name, "it must be more than zero")
	case d > most:
		c.bad(name, fmt.Sprintf("it is over the limit of %v", most))
	}
	return d
}

func (c *controls) notBefore(ev *spool.Event) {
	at, hasTime := c.one("Postern-Not-Before")
	delay, hasDelay := c.one("Postern-Delay")
	switch {
	case hasTime && hasDelay:
		c.bad("Postern-Delay", "it cannot be combined with Postern-Not-Before; send one of them")
	case hasDelay:
		d, ok := parseDuration(delay)
		if !ok || d < 0 {
			c.bad("Postern-Delay", "it must be a duration such as 90s, 5m or 1h30m, or whole seconds, of ten years at most")
		}
		c.startAt(ev, "Postern-Delay", ev.AcceptedAt.Add(d))
	case hasTime:
		// RFC 3339, section 5.6, lets T and Z be written small.
		t, err := time.Parse(time.RFC3339, strings.ToUpper(at))
		if err != nil {
			c.bad("Postern-Not-Before", "it must be an RFC 3339 time such as 2030-01-31T09:00:00Z")
		}
		c.startAt(ev, "Postern-Not-Before", t)
	}
}

// startAt sets NotBefore where the time is yet to come.
func (c *controls) startAt(ev *spool.Event, name string, t time.Time) {
	if t.Sub(ev.AcceptedAt) > maxAhead {
		c.bad(name, "it is more than ten years ahead")
	}
	if t.After(ev.AcceptedAt) {
		ev.NotBefore = t.UTC().Truncate(time.Microsecond)
	}
}

// overrides reads what may not exceed the endpoint's bounds.
func (c *controls) overrides(ev *spool.Event, ep Endpoint) {
	ev.Timeout = c.duration("Postern-Timeout", cmp.Or(ep.MaxTimeout, DefaultMaxTimeout))
	text, ok := c.one("Postern-Max-Attempts")
	if !ok {
		return
	}
	most := cmp.Or(ep.MaxAttempts, DefaultMaxAttempts)
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 || int(n) > most {
		c.bad("Postern-Max-Attempts", fmt.Sprintf("it must be a whole number from 1 to %d", most))
	}
	ev.MaxAttempts = int(n)
}

// parseDuration reads Go's form or whole seconds.
func parseDuration(text string) (time.Duration, bool) {
	if d, ok := digits(text); ok {
		return d, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// validID tells whether an event ID has the contract's form.
func validID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != ':' && c != '-' {
			return false
		}
	}
	return true
}
