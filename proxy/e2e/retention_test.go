package e2e

import (
	"testing"
)

// What is kept is forgotten in time: summaries, dead letters, and the keys that recognise a repeated request.
func TestRetention(t *testing.T) {
	t.Parallel()
	r, bad := newReceiver(t, nil), newReceiver(t, script(status(400)))
	p := startPostern(t, calm+"spool: { delivered_retention: 1s, dead_letter_retention: 2s, dedupe_window: 1s }\n")
	first := p.accept("POST", "/"+r.url("/"), "x", "Idempotency-Key: k")
	p.waitState(first, "delivered", patience)
	dead := p.accept("POST", "/"+bad.url("/"), "x")
	p.waitState(dead, "dead_letter", patience)
	gone := func(id string) bool { return p.api("GET", "events/"+id, "", nil) == 404 }
	p.eventually(patience, "the delivered event to be forgotten", func() bool { return gone(first) })
	p.eventually(patience, "the dead letter to be forgotten", func() bool { return gone(dead) })
	p.eventually(patience, "the key to be forgotten", func() bool {
		return p.send("POST", "/"+r.url("/"), "other", "Idempotency-Key: k").Status == 202
	})
	r.wait(2, patience)
}

// A key is recognised for as long as its window says, also after the event was delivered and forgotten; and an explicit
// ID is unique while any trace of it remains.
func TestDedupeOutlivesTheSummary(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm+"spool: { delivered_retention: 1s }\n")
	id := p.accept("POST", "/"+r.url("/"), "x", "Idempotency-Key: k", "Postern-Event-Id: mine")
	p.eventually(patience, "the summary to be forgotten", func() bool { return p.api("GET", "events/"+id, "", nil) == 404 })
	p.kill()
	p.start()
	again := p.send("POST", "/"+r.url("/"), "x", "Idempotency-Key: k", "Postern-Event-Id: mine")
	if got := again.acceptance(t); again.Status != 200 || !got.Duplicate || got.ID != "mine" {
		t.Errorf("status %d: %s", again.Status, again.Body)
	}
	checkProblem(t, p.send("POST", "/"+newReceiver(t, nil).url("/"), "x", "Postern-Event-Id: mine"), 422, "")
	if n := len(r.requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// A TTL counts from acceptance, across a restart, and holds for an event whose first attempt would come too late.
func TestTTLAcrossARestart(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm+"endpoints:\n  - { name: partner, url: \""+r.url("/")+"\" }\n")
	delayed := p.accept("POST", "/to/partner", "x", "Postern-Ttl: 1s", "Postern-Delay: 1h")
	if e := p.waitState(delayed, "dead_letter", patience); e.DeadReason != "expired" || len(e.Attempts) != 0 {
		t.Errorf("%s with %d attempts, want expired with none", e.DeadReason, len(e.Attempts))
	}
	p.api("POST", "endpoints/partner/pause", "", nil)
	id := p.accept("POST", "/to/partner", "x", "Postern-Ttl: 1s")
	p.stop(patience)
	p.start()
	if e := p.waitState(id, "dead_letter", patience); e.DeadReason != "expired" || len(e.Attempts) != 0 {
		t.Errorf("%s with %d attempts, want expired with none", e.DeadReason, len(e.Attempts))
	}
	if len(r.requests()) != 0 {
		t.Error("it was sent all the same")
	}
}
