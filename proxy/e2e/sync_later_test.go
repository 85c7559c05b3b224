package e2e

import (
	"testing"

	"postern/sync/pgtest"
)

// Who switches sync on later, or moves to another Postgres, finds there what is already in the spool: once, and at what
// happens to it afterwards too.
func TestSyncSwitchedOnLater(t *testing.T) {
	db := pgtest.New(t)
	bad := newReceiver(t, script(status(400)))
	p := startPostern(t, calm)
	dead := []string{p.accept("POST", "/"+bad.url("/"), "x"), p.accept("POST", "/"+bad.url("/"), "x")}
	for _, id := range dead {
		p.waitState(id, "dead_letter", patience)
	}
	delayed := p.accept("POST", "/"+newReceiver(t, nil).url("/"), "x", "Postern-Delay: 1h")
	p.stop(patience)
	p.configure(synced(db, ""))
	for round := range 2 {
		p.start()
		p.eventually(patience, "Postgres to know what waits", func() bool {
			return ask[bool](t, db, "SELECT to_regclass('webhook_queue') IS NOT NULL") && ask[int](t, db, "SELECT count(*) FROM webhook_queue") == 3
		})
		for query, want := range map[string]int{
			"SELECT count(*) FROM webhook_queue WHERE status = 'dead_letter' AND dead_reason = 'permanent' AND last_status_code = 400 AND attempt_count = 1": 2,
			"SELECT count(*) FROM webhook_queue WHERE status = 'pending' AND attempt_count = 0 AND next_attempt_at > now() + interval '50 minutes'":          1,
			"SELECT count(*) FROM endpoint_latency": 2,
		} {
			if n := ask[int](t, db, query); n != want {
				t.Errorf("round %d: %s: %d, want %d", round, query, n, want)
			}
		}
		if round == 0 {
			p.stop(patience)
		}
	}
	p.api("POST", "events/"+delayed+"/retry", "", nil)
	p.api("DELETE", "events/"+dead[0], "", nil)
	p.eventually(patience, "what happens later to arrive", func() bool {
		return ask[int](t, db, "SELECT count(*) FROM webhook_queue WHERE status = 'delivered'") == 1 &&
			ask[int](t, db, "SELECT count(*) FROM webhook_queue WHERE status = 'dead_letter'") == 1
	})
}
