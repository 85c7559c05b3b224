package pgstore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"postern/sync/pgstore"
)

// reader opens a store as the command line does: without an instance.
func reader(t *testing.T, dsn, schema string) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(t.Context(), pgstore.Config{DSN: dsn, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestFleetStatus(t *testing.T) {
	s, db := migrated(t)
	r := reader(t, db.DSN, db.Schema)
	empty := must[pgstore.Status](t)(r.FleetStatus(t.Context()))
	if empty.Pending != 0 || empty.OldestPending != nil || empty.AvgDeliveryMS != nil || time.Since(empty.Now).Abs() > time.Minute {
		t.Errorf("empty: %+v", empty)
	}
	write(t, s, pending("p"), delivered("d", 20*time.Millisecond), tried("x", 1, "dead_letter", 404, "http_404", 1))
	beat := pgstore.Heartbeat{Pending: 1, InFlight: 2, OldestPending: now.Add(-time.Minute), SpoolBytes: 100, Lag: 1500 * time.Millisecond}
	if _, err := s.Heartbeat(t.Context(), beat); err != nil {
		t.Fatal(err)
	}
	st := must[pgstore.Status](t)(r.FleetStatus(t.Context()))
	st.Now = time.Time{}
	text, _ := json.Marshal(st)
	same(t, "status", string(text), `{"pending":1,"awaiting_retry":0,"in_flight":2,"dead_letter":1,"delivered_last_hour":1,"failed_last_hour":1,"oldest_pending":"`+
		st.OldestPending.Format(time.RFC3339)+`","avg_delivery_ms_last_hour":20,"spool_bytes":100,"sync":{"instances":1,"lag_seconds":1.5,"backlog_rows":0,"rejected_rows":0},"now":"0001-01-01T00:00:00Z"}`)
	if !st.OldestPending.Equal(now.Add(-time.Minute)) {
		t.Errorf("oldest pending %v", st.OldestPending)
	}
	list := must[[]pgstore.Instance](t)(r.FleetInstances(t.Context()))
	if len(list) != 1 || list[0].ID != instanceA || !list[0].Live || list[0].Version != "test" || list[0].LagMS != 1500 {
		t.Errorf("instances %+v", list)
	}
}

func TestFleetHealthAndPercentiles(t *testing.T) {
	s, db := migrated(t)
	r := reader(t, db.DSN, db.Schema)
	rows := attemptsOf("https://slow.example/pb", heavyTailed(30, 3)...)
	for i := range rows {
		rows[i].EndpointName = "slow"
		rows[i].Attempt.Duration += 3 * time.Second
	}
	write(t, s, append(rows, delivered("d", 10*time.Millisecond))...)
	report(t, s, health("open", 4))
	urls := func(f pgstore.HealthFilter) (list []string) {
		for _, h := range must[[]pgstore.EndpointHealth](t)(r.FleetHealth(t.Context(), f)) {
			list = append(list, h.EndpointURL+" "+h.State)
		}
		return list
	}
	same(t, "all", urls(pgstore.HealthFilter{}), "[https://slow.example/pb closed https://partner.example open]")
	same(t, "slow", urls(pgstore.HealthFilter{OverP95: 2 * time.Second, MinSamples: 20}), "[https://slow.example/pb closed]")
	same(t, "by name", urls(pgstore.HealthFilter{Endpoint: "slow"}), "[https://slow.example/pb closed]")
	same(t, "by URL", urls(pgstore.HealthFilter{Endpoint: partner}), "[https://partner.example open]")
	same(t, "none", len(urls(pgstore.HealthFilter{MinSamples: 1000})), 0)

	p := must[[]pgstore.Percentiles](t)(r.FleetPercentiles(t.Context(), "slow", time.Hour))
	if len(p) != 1 || p[0].SampleCount != 30 || !p[0].Exact || *p[0].P50MS < 3000 || p[0].EndpointURL != "https://slow.example/pb" {
		t.Errorf("percentiles %+v", p)
	}
	if p := must[[]pgstore.Percentiles](t)(r.FleetPercentiles(t.Context(), "nobody", time.Hour)); len(p) != 0 {
		t.Errorf("of nobody: %+v", p)
	}
	db.Exec(`UPDATE endpoint_minutes SET minute = minute - interval '1 day' WHERE endpoint_id = 1; UPDATE endpoint_hours SET hour = hour - interval '1 day' WHERE endpoint_id = 1`)
	names := func(from, until time.Duration) (list []string) {
		for _, p := range must[[]pgstore.Percentiles](t)(r.FleetP95(t.Context(), from, until)) {
			list = append(list, fmt.Sprint(p.EndpointURL, " ", p.SampleCount))
		}
		return list
	}
	first := "https://slow.example/pb 30"
	second := "https://partner.example 1"
	if db.Value(`SELECT endpoint_url FROM endpoints WHERE endpoint_id = 1`) == partner {
		first, second = second, first
	}
	same(t, "now", names(time.Hour, 0), "["+second+"]")
	same(t, "an hour of yesterday", names(25*time.Hour, 23*time.Hour), "["+first+"]")
	same(t, "both", len(names(26*time.Hour, 0)), 2)
}

func TestFleetLetters(t *testing.T) {
	s, db := migrated(t)
	r := reader(t, db.DSN, db.Schema)
	write(t, s, letters("https://limit.example", 3, time.Minute, 429, "http_429")...)
	write(t, s, letters(partner, 2, 90*time.Minute, 0, "timeout")...)
	write(t, s, delivered("d", 1), pending("p"), tried("f", 3, "failed", 500, "http_500", 1))
	expired := pending("never tried")
	expired.Version, expired.Status, expired.DeadReason = 2, "dead_letter", "expired"
	write(t, s, expired)
	var got []string
	note := func(d pgstore.DeadLetter) bool {
		got = append(got, fmt.Sprint(d.EndpointURL, d.StatusCode, d.Error, d.Attempts, d.Reason))
		return true
	}
	if err := r.FleetDeadLetters(t.Context(), pgstore.Letters{Since: 24 * time.Hour, Endpoint: partner}, note); err != nil {
		t.Fatal(err)
	}
	same(t, "letters", strings.Join(got, " "), partner+"0timeout5exhausted "+partner+"0timeout5exhausted "+partner+"00expired")
	n := 0
	if err := r.FleetDeadLetters(t.Context(), pgstore.Letters{Since: 24 * time.Hour}, func(pgstore.DeadLetter) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("stopped after %d, %v", n, err)
	}
	also := delivered("also", time.Millisecond)
	also.EndpointName, also.EndpointURL = "https://limit.example", "https://limit.example"
	write(t, s, also)
	taken, refused := 0, 0
	err := r.FleetAnswers(t.Context(), time.Hour, func(a pgstore.Answers) bool {
		taken, refused = taken+a.Taken, refused+a.Refused
		if a.EndpointURL != "https://limit.example" || a.Refused == 0 || time.Since(a.At) > time.Hour {
			t.Errorf("answers %+v", a)
		}
		return true
	})
	if err != nil || taken != 1 || refused != 3 {
		t.Errorf("%d taken, %d refused, %v", taken, refused, err)
	}
	same(t, "counts", must[[]pgstore.DeadCount](t)(r.FleetDeadCounts(t.Context(), time.Hour)), "[{https://limit.example 3 0} {https://partner.example 2 1}]")
}

// TestReadersNeedNoMore than what the documentation says.
func TestReadersNeedNoMore(t *testing.T) {
	s, db := migrated(t)
	write(t, s, delivered("d", 1))
	report(t, s, health("open", 1))
	role := db.Schema + "_ro"
	db.Exec(`CREATE ROLE ` + role + ` LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA ` + db.Schema + ` TO ` + role + `; GRANT SELECT ON ALL TABLES IN SCHEMA ` + db.Schema + ` TO ` + role)
	t.Cleanup(func() { dropRole(t, db.DSN, role) })
	cfg := pgstore.Config{}
	as(t, db.DSN, role)(&cfg)
	r := reader(t, cfg.DSN, db.Schema)
	if _, err := r.FleetStatus(t.Context()); err != nil {
		t.Error(err)
	}
	if list, err := r.FleetHealth(t.Context(), pgstore.HealthFilter{}); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	if p, err := r.FleetPercentiles(t.Context(), partner, time.Hour); err != nil || len(p) != 1 {
		t.Error(p, err)
	}
	if err := r.Write(t.Context(), []pgstore.Row{delivered("x", 1)}); pgstore.Classify(err) != pgstore.KindSetup {
		t.Errorf("writing: %v", err)
	}
}

// TestFleetHours: the pictures' percentiles are near the exact ones, hour by hour, over all instances.
func TestFleetHours(t *testing.T) {
	s, db := migrated(t)
	r := reader(t, db.DSN, db.Schema)
	write(t, s, attemptsOf(partner, heavyTailed(200, 5)...)...)
	db.Exec(`INSERT INTO endpoint_hours SELECT instance_id, endpoint_id, hour - interval '3 hours', attempts, delivered, delivered_ms, buckets, counts FROM endpoint_hours;
		INSERT INTO endpoint_hours SELECT 'aaaaaaaa-0000-4000-8000-000000000000', endpoint_id, hour, attempts, delivered, delivered_ms, buckets, counts FROM endpoint_hours`)
	exact := must[[]pgstore.Percentiles](t)(r.FleetPercentiles(t.Context(), partner, time.Hour))[0]
	hours := must[[]pgstore.Hour](t)(r.FleetHours(t.Context(), 24*time.Hour))
	total := int64(0)
	for i, h := range hours {
		total += h.SampleCount
		if i > 0 && !h.Hour.After(hours[i-1].Hour) {
			t.Errorf("hour %d is %v after %v", i, h.Hour, hours[i-1].Hour)
		}
	}
	if total != 4*200 || len(hours) < 2 {
		t.Errorf("%d samples in %+v", total, hours)
	}
	if h := hours[len(hours)-1]; h.SampleCount == 400 && (h.P50MS < 0.95**exact.P50MS || h.P50MS > 1.05**exact.P50MS || h.P95MS < 0.9**exact.P95MS || h.P95MS > 1.1**exact.P95MS) {
		t.Errorf("%+v beside the exact %v and %v", h, *exact.P50MS, *exact.P95MS)
	}
	if old := must[[]pgstore.Hour](t)(r.FleetHours(t.Context(), time.Minute)); len(old) > 1 {
		t.Errorf("within the last minute: %+v", old)
	}
}

func TestFleetBreakers(t *testing.T) {
	s, db := migrated(t)
	r := reader(t, db.DSN, db.Schema)
	if list := must[[]pgstore.Breaker](t)(r.FleetBreakers(t.Context(), 10)); len(list) != 0 {
		t.Errorf("of nobody: %+v", list)
	}
	report(t, s, health("open", 4))
	list := must[[]pgstore.Breaker](t)(r.FleetBreakers(t.Context(), 10))
	if len(list) != 1 || list[0].State != "open" || list[0].InstanceID != instanceA || list[0].EndpointURL != partner || list[0].ConsecutiveFailures != 4 || list[0].OpenedAt == nil {
		t.Errorf("open: %+v", list)
	}
	report(t, s, health("closed", 0))
	if list := must[[]pgstore.Breaker](t)(r.FleetBreakers(t.Context(), 10)); len(list) != 0 {
		t.Errorf("closed: %+v", list)
	}
	report(t, s, health("half_open", 4))
	db.Exec(`UPDATE instances SET heartbeat_at = now() - interval '1 hour'`)
	if list := must[[]pgstore.Breaker](t)(r.FleetBreakers(t.Context(), 10)); len(list) != 0 {
		t.Errorf("of an instance that is not alive: %+v", list)
	}
}
