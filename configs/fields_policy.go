package configs

import (
	"time"

	"github.com/goccy/go-yaml/ast"
)

const (
	maxAttempts  = 10_000    // a loop by any measure
	maxThreshold = 1_000_000 // a breaker that never opens, for those who want none
)

// fields is what defaults and endpoints have in common.
func (p *Policy) fields() section {
	return section{
		{name: "timeout", kind: duration(&p.Timeout, time.Millisecond),
			doc: "End of an attempt: connect, headers and body together."},
		{name: "concurrency", kind: integer(&p.Concurrency, 1, maxConcurrency), doc: "Attempts at once for one endpoint."},
		{name: "retry", kind: p.Retry.fields(), doc: "When a failed attempt is tried again."},
		{name: "breaker", kind: p.Breaker.fields(), doc: "When an endpoint is left alone for a while."},
		{name: "override", kind: section{
			{name: "max_attempts", kind: integer(&p.Override.MaxAttempts, 1, maxAttempts),
				doc: "Most that Postern-Max-Attempts may ask for."},
			{name: "max_timeout", kind: duration(&p.Override.MaxTimeout, time.Millisecond),
				doc: "Most that Postern-Timeout may ask for."},
		}, doc: "How far an application may go beyond the policy for one event."},
		{name: "limits", kind: list[Limit]{&p.Limits, parseLimit, func(l Limit) any { return l.String() }},
			doc: `Most requests in any window of a length, such as ["100/1m", "1000/1h"].`},
		{name: "burst", kind: scalar[int]{&p.Burst, parseBurst, func(n int) any { return int64(n) }},
			doc: "Requests at once within the shortest of limits; 1 spaces them evenly."},
		{name: "sign", kind: p.Sign.fields(), doc: "How requests are signed."},
		{name: "success", kind: section{
			{name: "body_matches", kind: pattern(&p.Success.BodyMatches), doc: "RE2 expression that a 2xx answer's body must match."},
			{name: "body_rejects", kind: pattern(&p.Success.BodyRejects), doc: "RE2 expression that it must not match."},
		}, doc: "What more than a 2xx a delivery needs."},
		{name: "http2", kind: boolean(&p.HTTP2),
			doc: "Whether HTTP/2 is offered to receivers over TLS; false keeps to HTTP/1.1."},
	}
}

func (r *Retry) fields() retrySection {
	return retrySection{r, section{
		{name: "max_attempts", kind: attempts{integer(&r.MaxAttempts, 1, maxAttempts), r},
			doc: "Attempts in all, the first included."},
		{name: "base_delay", kind: duration(&r.BaseDelay, time.Millisecond),
			doc: "Upper bound of the first delay; it doubles with every attempt. The delay itself is random below it."},
		{name: "max_delay", kind: duration(&r.MaxDelay, time.Millisecond), doc: "Where the doubling ends."},
		{name: "max_retry_after", kind: duration(&r.MaxRetryAfter, 0), doc: "Most that a receiver's Retry-After may ask for."},
		{name: "schedule", kind: schedule{r},
			doc: "Upper bounds of the delays, one by one, instead of max_attempts; an empty list means one attempt."},
		{name: "statuses", kind: statuses{list[int]{&r.Statuses, parseStatus, func(n int) any { return int64(n) }}},
			doc: "Status codes that are tried again, instead of 408, 425, 429 and 5xx; an empty list means those."},
	}}
}

func (b *Breaker) fields() section {
	return section{
		{name: "failure_threshold", kind: integer(&b.FailureThreshold, 1, maxThreshold),
			doc: "Failures in a row that open the breaker."},
		{name: "cooldown", kind: duration(&b.Cooldown, time.Millisecond), doc: "How long it stays open before one probe."},
		{name: "max_cooldown", kind: duration(&b.MaxCooldown, time.Millisecond),
			doc: "Where the cooldown's doubling after failed probes ends."},
		{name: "slow_p95", kind: duration(&b.SlowP95, 0),
			doc: "An endpoint whose p95 of 24 hours is over this has the lower threshold; 0s for never."},
		{name: "slow_failure_threshold", kind: integer(&b.SlowFailureThreshold, 1, maxThreshold),
			doc: "The threshold of a slow endpoint, if it is the lower one."},
	}
}

func (s *Sign) fields() section {
	return section{
		{name: "scheme", kind: word(&s.Scheme, SchemeNone, SchemeStandard, SchemeStripe, SchemeHub, SchemeTemplate),
			doc: "none, standard (Standard Webhooks), stripe, hub (GitHub's X-Hub-Signature-256), or template (a header of the receiver's own)."},
		{name: "header", kind: plain(&s.Header, parseHeaderName),
			doc: "The header of the scheme template, and of stripe where it is not Stripe-Signature."},
		{name: "template", kind: plain(&s.Template, parseTemplate),
			doc: "The value of the header of the scheme template, such as sha256={hex({timestamp}.{body})}; {id} and base64 work too."},
		{name: "secrets", kind: secretList{&s.texts}, doc: "Secrets, newest first, so that one can be rotated without a gap; one per file."},
	}
}

// endpointOnly is what makes no sense for every target of the world, or would hand it credentials.
func (p *Policy) endpointOnly() section {
	return section{
		{name: "headers", kind: section{
			{name: "set", kind: headerSet{&p.Headers.Set}, doc: "Request headers and their values, which are secrets."},
		}, doc: "The endpoint's own headers."},
		{name: "tls", kind: section{
			{name: "ca_file", kind: plain(&p.TLS.CAFile, filePathOrEmpty), doc: "PEM file that replaces the system's roots."},
			{name: "cert_file", kind: plain(&p.TLS.CertFile, filePathOrEmpty), doc: "PEM file of the client certificate."},
			{name: "key_file", kind: plain(&p.TLS.KeyFile, filePathOrEmpty), doc: "PEM file of its key."},
			{name: "min_version", kind: word(&p.TLS.MinVersion, "1.2", "1.3"), doc: "The oldest version of TLS that is spoken: 1.2 or 1.3."},
			{name: "server_name", kind: plain(&p.TLS.ServerName, parseServerName),
				doc: "The name to ask for (SNI), which the receiver's certificate must have; empty: the host of the target."},
		}, doc: "Roots, client certificate, version and name. The files are read again when they change."},
	}
}

// retrySection is retry: schedule and max_attempts replace each other, wherever the replaced one comes from.
type retrySection struct {
	p *Retry
	section
}

func (s retrySection) read(r *reader, n ast.Node, path string) {
	s.section.read(r, n, path)
	attempts, schedule := joinPath(path, "max_attempts"), joinPath(path, "schedule")
	switch {
	case r.has(attempts) && r.has(schedule):
		r.addAt(r.where[schedule], schedule, "schedule and max_attempts exclude each other: a schedule of %d means %d attempts; remove one of them",
			len(s.p.Schedule), len(s.p.Schedule)+1)
	case r.has(attempts):
		s.p.Schedule, s.p.HasSchedule = nil, false
	}
}

// attempts is max_attempts, which is left out where a schedule decides.
type attempts struct {
	kind
	p *Retry
}

func (a attempts) show() any {
	if a.p.HasSchedule {
		return nil
	}
	return a.kind.show()
}

// schedule is retry.schedule. An empty list says something else than none.
type schedule struct{ p *Retry }

func (s schedule) list() list[time.Duration] {
	return list[time.Duration]{&s.p.Schedule, durationFrom(0), func(d time.Duration) any { return formatDuration(d) }}
}

func (s schedule) nullable() {}

func (s schedule) read(r *reader, n ast.Node, path string) {
	s.list().read(r, n, path)
	if len(s.p.Schedule) >= maxAttempts {
		r.add(n, path, "the schedule has too many entries; write at most %d", maxAttempts-1)
	}
	s.p.HasSchedule, s.p.MaxAttempts = true, len(s.p.Schedule)+1
}

func (s schedule) show() any {
	if !s.p.HasSchedule {
		return nil
	}
	return s.list().show()
}

func (s schedule) raw() any { return s.show() }

// statuses is retry.statuses, where an empty list is the same as none.
type statuses struct{ list[int] }

func (s statuses) read(r *reader, n ast.Node, path string) {
	s.list.read(r, n, path)
	if len(*s.p) == 0 {
		*s.p = nil
	}
}
