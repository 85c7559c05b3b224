package pgstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"postern/sync/pgstore"
)

// waitingSince is an event that was accepted that long ago and is due since due ago; attempts were made at those ages.
func waitingSince(id, url string, accepted, due time.Duration, attempts ...time.Duration) (rows []pgstore.Row) {
	r := pending(id)
	r.EndpointURL, r.EndpointName = url, url
	r.CreatedAt, r.NextAttempt = now.Add(-accepted), now.Add(-due)
	rows = append(rows, r)
	for i, age := range attempts {
		r.Version, r.Status, r.Attempts = uint64(i+2), "failed", i+1
		r.Attempt = &pgstore.Attempt{Number: i + 1, EndedAt: now.Add(-age), StatusCode: 503, Error: "http_503"}
		rows = append(rows, r)
	}
	return rows
}

// summary is who waits, how many, and since how many minutes before now.
func summary(list []pgstore.Waiting) string {
	var out []string
	since := time.Since(now).Seconds()
	for _, w := range list {
		out = append(out, fmt.Sprintf("%s %s %d %.0fm", strings.TrimPrefix(w.EndpointURL, "https://"), w.EventID, w.Events, (w.AgeSeconds-since)/60))
	}
	return strings.Join(out, ", ")
}

const (
	m = time.Minute
	h = time.Hour
)

func TestFleetQueueAge(t *testing.T) {
	s, db := migrated(t)
	r := reader(t, db.DSN, db.Schema)
	for _, rows := range [][]pgstore.Row{
		waitingSince("fresh", "https://fresh.example", 5*m, 5*m),
		waitingSince("old", "https://old.example", 90*m, 90*m),
		waitingSince("older", "https://old.example", 100*m, 100*m),
		waitingSince("delayed", "https://delayed.example", 10*h, -2*h),
		waitingSince("was delayed", "https://due.example", 10*h, 40*m),
		waitingSince("tried", "https://tried.example", 10*h, 10*h, 10*h),
	} {
		write(t, s, rows...)
	}
	list := must[[]pgstore.Waiting](t)(r.FleetQueueAge(t.Context(), 30*m))
	same(t, "over half an hour", summary(list), "old.example older 2 100m, due.example was delayed 1 40m")
	if list[0].Live || list[0].InstanceID != instanceA {
		t.Errorf("its instance has not sent a heartbeat: %+v", list[0])
	}
	report(t, s)
	list = must[[]pgstore.Waiting](t)(r.FleetQueueAge(t.Context(), 95*m))
	same(t, "over 95 minutes", summary(list), "old.example older 1 100m")
	if !list[0].Live {
		t.Error("its instance is alive")
	}
}

func TestFleetStuck(t *testing.T) {
	s, db := migrated(t)
	r := reader(t, db.DSN, db.Schema)
	more := waitingSince("asked for more", "https://more.example", 9*h, h, 9*h, 8*h)
	for i := range more {
		more[i].MaxAttempts = 9
	}
	for _, rows := range [][]pgstore.Row{
		waitingSince("young", "https://young.example", 3*h, 0, 3*h, 2*h),
		waitingSince("stuck", "https://stuck.example", 5*h, 5*h, 5*h, 4*h, 3*h),
		waitingSince("never tried", "https://stuck.example", 6*h, 6*h),
		waitingSince("delayed", "https://delayed.example", 9*h, -h),
		waitingSince("was delayed", "https://delayed.example", 9*h, h),
		waitingSince("tried after a delay", "https://delayed.example", 20*h, -m, 2*h, h),
		waitingSince("sent again", "https://again.example", 200*h, m, 200*h, 199*h),
		waitingSince("tried again", "https://again.example", 200*h, -m, 200*h, 199*h, h),
		waitingSince("stuck again", "https://stuck-again.example", 200*h, 186*h, 200*h, 190*h, 189*h, 187*h),
		more,
		waitingSince("patient", "https://patient.example", 20*h, 9*h, 20*h, 18*h, 10*h),
	} {
		write(t, s, rows...)
	}
	write(t, s, tried("done", 1, "delivered", 200, "", 1), tried("dead", 5, "dead_letter", 503, "http_503", 1))
	db.Exec(`UPDATE webhook_queue SET created_at = now() - interval '30 hours' WHERE event_id IN ('done', 'dead')`)
	// A row without any attempt in the history, and without a time for the next one: what is known is when it was accepted.
	db.Exec(`INSERT INTO webhook_queue (endpoint_id, endpoint_url, endpoint_name, status, attempt_count, max_attempts, created_at, event_id, instance_id, version)
		VALUES (1, 'https://bare.example', 'bare', 'failed', 2, 5, '` + now.Add(-5*h).Format(time.RFC3339) + `', 'bare', '` + instanceB + `', 3)`)
	w := pgstore.Windows{
		Default: pgstore.Window{Longest: 4 * h, Attempts: 5, Step: 2 * h},
		ByURL:   map[string]pgstore.Window{"https://patient.example": {Longest: 48 * h, Attempts: 9, Step: h}},
	}
	got := must[[]pgstore.Waiting](t)(r.FleetStuck(t.Context(), w))
	same(t, "stuck", summary(got), "stuck-again.example stuck again 1 11400m, stuck.example never tried 2 360m, bare.example bare 1 300m")
	w.ByURL["https://patient.example"] = pgstore.Window{Longest: h, Attempts: 9}
	got = must[[]pgstore.Waiting](t)(r.FleetStuck(t.Context(), w))
	if !strings.Contains(summary(got), "patient.example patient 1") {
		t.Errorf("with a shorter window: %s", summary(got))
	}
	w = pgstore.Windows{Default: pgstore.Window{Longest: 5 * 365 * 24 * h, Attempts: 1, Step: 10 * 365 * 24 * h}}
	db.Exec(`UPDATE webhook_queue SET max_attempts = 2147483647 WHERE event_id = 'stuck'`)
	same(t, "windows of years", len(must[[]pgstore.Waiting](t)(r.FleetStuck(t.Context(), w))), 0)
}

func TestFleetEndpoints(t *testing.T) {
	s, db := migrated(t)
	r := reader(t, db.DSN, db.Schema)
	eu := delivered("eu", 20*time.Millisecond)
	eu.EndpointName, eu.EndpointURL = "partner-a", "https://eu.partner.example/pb"
	us := tried("us", 1, "dead_letter", 404, "http_404", 40*time.Millisecond)
	us.EndpointName, us.EndpointURL = "partner-a", "https://us.partner.example/pb"
	write(t, s, eu, us, pending("p"), tried("f", 1, "failed", 503, "http_503", time.Millisecond), delivered("d", time.Millisecond))
	report(t, s)
	for asked, want := range map[string]string{
		"partner-a":                     "[https://eu.partner.example/pb https://us.partner.example/pb]",
		"https://us.partner.example/pb": "[https://us.partner.example/pb]",
		partner:                         "[" + partner + "]",
		partner + "/":                   "[" + partner + "]",
		"nobody":                        "[]",
		"":                              "[]",
	} {
		same(t, asked, must[[]string](t)(r.FleetEndpoints(t.Context(), asked)), want)
	}
	both := []string{"https://eu.partner.example/pb", "https://us.partner.example/pb"}
	st := must[pgstore.Status](t)(r.FleetStatusOf(t.Context(), both))
	if st.DeadLetter != 1 || st.DeliveredLastHour != 1 || st.FailedLastHour != 1 || st.Pending != 0 || *st.AvgDeliveryMS != 20 || st.Sync.Instances != 1 {
		t.Errorf("partner-a: %+v", st)
	}
	st = must[pgstore.Status](t)(r.FleetStatusOf(t.Context(), []string{partner}))
	if st.DeadLetter != 0 || st.Pending != 1 || st.AwaitingRetry != 1 || st.OldestPending == nil || st.DeliveredLastHour != 1 {
		t.Errorf("the other: %+v", st)
	}
	p := must[[]pgstore.Percentiles](t)(r.FleetPercentilesOf(t.Context(), nil, h))
	if len(p) != 3 || p[0].EndpointURL != both[1] || *p[0].P95MS != 40 || !p[0].Exact {
		t.Errorf("all percentiles: %+v", p)
	}
	if p := must[[]pgstore.Percentiles](t)(r.FleetPercentilesOf(t.Context(), both[:1], h)); len(p) != 1 || p[0].SampleCount != 1 {
		t.Errorf("percentiles of one: %+v", p)
	}
	if at := must[time.Time](t)(r.FleetNow(t.Context())); time.Since(at).Abs() > m {
		t.Errorf("now is %v", at)
	}
}

func TestMigrationDownSQLIsAScript(t *testing.T) {
	s, db := migrated(t)
	script, err := pgstore.MigrationDownSQL(db.Schema, pgstore.SchemaVersion(), 1)
	if err != nil {
		t.Fatal(err)
	}
	db.Exec(script)
	if a, err := s.Applied(t.Context()); err != nil || a.Version != pgstore.SchemaVersion()-1 {
		t.Errorf("version %d, %v", a.Version, err)
	}
	rest, err := pgstore.MigrationDownSQL(db.Schema, pgstore.SchemaVersion()-1, 100)
	if err != nil {
		t.Fatal(err)
	}
	db.Exec(rest)
	same(t, "objects", db.Value(objects), 0)
	if err := s.Migrate(t.Context()); err != nil {
		t.Error(err)
	}
	for _, bad := range []struct {
		schema string
		from   int
	}{{"x; DROP TABLE y", 1}, {"postern", 99}} {
		if _, err := pgstore.MigrationDownSQL(bad.schema, bad.from, 1); err == nil {
			t.Errorf("%+v made a script", bad)
		}
	}
}
