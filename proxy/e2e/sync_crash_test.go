package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"postern/sync/pgtest"
)

// SIGKILL at random moments while rows go to Postgres, through a transaction pooler where there is one: between its commit
// and our mark too, so that rows go twice. Each event arrives, and every attempt that arrived is counted once.
func TestKilledWhileSyncing(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	db := pgtest.On(t, server.DSN())
	through := *db
	if pgtest.FindPooler() != "" {
		through.DSN = server.Pooler(t)
	} else {
		t.Log("NOT TESTED through PgBouncer: there is none")
	}
	r := newReceiver(t, nil)
	p := startPostern(t, strings.Replace(synced(&through, ""), "200ms", "100ms", 1))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	p.accept("POST", "/"+r.url("/"), "x")
	p.eventually(patience, "the first row", func() bool {
		return ask[bool](t, db, "SELECT to_regclass('webhook_queue') IS NOT NULL") && ask[int](t, db, "SELECT count(*) FROM webhook_queue") == 1
	})
	accepted := 1
	for range 8 {
		had := ask[int](t, db, "SELECT count(*) FROM webhook_queue")
		for range 1 + rnd.IntN(150) {
			p.accept("POST", "/"+r.url("/"), "x")
			accepted++
		}
		if rnd.IntN(2) == 0 { // else wherever it is
			p.eventually(patience, "rows to arrive", func() bool { return ask[int](t, db, "SELECT count(*) FROM webhook_queue") > had })
		}
		p.kill()
		p.start()
	}
	p.settled(patience)
	p.eventually(patience, "every event to be delivered in Postgres", func() bool {
		return ask[int](t, db, "SELECT count(*) FROM webhook_queue WHERE status = 'delivered'") == accepted
	})
	if n := ask[int](t, db, "SELECT count(*) FROM webhook_queue"); n != accepted {
		t.Errorf("%d events in Postgres, want %d", n, accepted)
	}
	// The record of an attempt in flight may be lost with its process: then its number is used again.
	counts := ask[string](t, db, `SELECT concat_ws(' ', count(*), (SELECT sum(attempts) FROM endpoint_minutes), (SELECT sum(attempts) FROM endpoint_hours)) FROM endpoint_latency`)
	if n := ask[int](t, db, "SELECT count(*) FROM endpoint_latency"); counts != fmt.Sprint(n, n, n) || n < accepted {
		t.Errorf("attempts, in minutes, in hours: %s; %d events", counts, accepted)
	}
}

// A receiver that answers with far too much, and a table that is gone: attempts go on as usual, and history that cannot be
// written never causes another request.
func TestBigAnswersAndALostTable(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	big := reply{Status: 500, Body: strings.Repeat("\x00\xffbig", 1<<20), Header: map[string]string{"X-Big": strings.Repeat("h", 60<<10)}}
	r := newReceiver(t, script(big, status(200), big, status(200)))
	p := startPostern(t, synced(db, ""))
	p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
	type status struct {
		Sync struct {
			Connected bool
			Rejected  int `json:"rejected_rows"`
			Error     string
		}
	}
	get := func() (s status) {
		p.api("GET", "status", "", &s)
		return s
	}
	p.eventually(patience, "both attempts to arrive", func() bool {
		return get().Sync.Connected && ask[int](t, db, "SELECT count(*) FROM endpoint_latency") == 2
	})
	db.Exec("ALTER TABLE endpoint_latency RENAME TO gone")
	e := p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
	p.eventually(patience, "the trouble to be told", func() bool { return strings.Contains(get().Sync.Error, "does not exist, or is not one of Postern's") })
	db.Exec("ALTER TABLE gone RENAME TO endpoint_latency")
	p.eventually(patience, "all four to arrive", func() bool {
		return get().Sync.Connected && ask[int](t, db, "SELECT count(*) FROM endpoint_latency") == 4
	})
	if n := len(r.requests()); n != 4 || len(e.Attempts) != 2 || get().Sync.Rejected != 0 {
		t.Errorf("%d requests, %d attempts of the second event, status %+v", n, len(e.Attempts), get().Sync)
	}
}
