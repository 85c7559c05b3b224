package fleet_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/proxy/fleet"
	"postern/sync/pgstore"
)

func TestStatus(t *testing.T) {
	c := newCrowd(t)
	c.alive(1)
	c.alive(2)
	c.alive(3)
	c.db.Exec(`UPDATE instances SET heartbeat_at = now() - interval '3 hours' WHERE instance_id = '` + instanceID(3) + `'`)
	c.write(event("https://a.example", 2*time.Minute), event("https://b.example", time.Minute))
	c.write(dead("https://b.example", 2, time.Minute, time.Second, 503, "http_503")...)
	c.write(delivered("https://a.example", 4, 20*time.Millisecond, time.Minute)...)

	st := must[fleet.Status](t)(c.fleet.Status(t.Context(), "", time.Hour))
	same(t, "counts", fmt.Sprint(st.Pending, st.DeadLetter, st.InFlight, st.DeliveredLastHour, st.FailedLastHour, st.SpoolBytes, st.Sync.Instances), "2 2 2 4 2 2097152 2")
	if len(st.Instances) != 2 || !st.Instances[0].Live || string(st.Instances[0].Labels) != `{"service": "checkout"}` {
		t.Errorf("instances of the last hour: %+v", st.Instances)
	}
	all := must[fleet.Status](t)(c.fleet.Status(t.Context(), "", 4*time.Hour))
	if n := len(all.Instances); n != 3 || all.Instances[2].Live {
		t.Errorf("%d instances of the last four hours", n)
	}
	one := must[fleet.Status](t)(c.fleet.Status(t.Context(), "https://b.example", time.Hour))
	same(t, "one endpoint", fmt.Sprint(one.Pending, one.DeadLetter, one.DeliveredLastHour, len(one.Instances)), "1 2 0 2")
	pasted := must[fleet.Status](t)(c.fleet.Status(t.Context(), "https://b.example?aff=7", time.Hour))
	same(t, "the same with a query", fmt.Sprint(pasted.Pending, pasted.DeadLetter, pasted.DeliveredLastHour), "1 2 0")

	text, err := json.Marshal(st)
	var flat map[string]any
	if err == nil {
		err = json.Unmarshal(text, &flat)
	}
	for _, name := range []string{"pending", "awaiting_retry", "in_flight", "dead_letter", "delivered_last_hour", "failed_last_hour", "oldest_pending", "avg_delivery_ms_last_hour", "spool_bytes", "sync", "instances"} {
		if _, ok := flat[name]; !ok || err != nil {
			t.Errorf("the JSON has no %s: %s, %v", name, text, err)
		}
	}
	if labels := flat["instances"].([]any)[0].(map[string]any)["labels"]; fmt.Sprint(labels) != "map[service:checkout]" {
		t.Errorf("labels are shown as %v", labels)
	}
}

func TestSlow(t *testing.T) {
	c := newCrowd(t)
	c.alive(1, "https://slow.example", "https://was.example", "https://few.example")
	c.write(delivered("https://slow.example", 30, 3*time.Second, 10*time.Minute)...)
	c.write(delivered("https://was.example", 30, 5*time.Second, 10*time.Hour)...)
	c.write(delivered("https://was.example", 20, 50*time.Millisecond, 10*time.Minute)...)
	c.write(delivered("https://few.example", 19, 9*time.Second, 10*time.Minute)...)
	ask := func(change func(*fleet.SlowQuery)) (urls []string) {
		q := fleet.SlowQuery{Since: 24 * time.Hour, OverP95: 2 * time.Second, MinSamples: 20}
		change(&q)
		for _, h := range must[[]pgstore.EndpointHealth](t)(c.fleet.Slow(t.Context(), q)) {
			urls = append(urls, fmt.Sprintf("%s %s %d", strings.TrimPrefix(h.EndpointURL, "https://"), h.State, h.SampleCount))
		}
		return urls
	}
	same(t, "a day", ask(func(*fleet.SlowQuery) {}), "[was.example closed 50 slow.example closed 30]")
	same(t, "an hour", ask(func(q *fleet.SlowQuery) { q.Since = time.Hour }), "[slow.example closed 30]")
	same(t, "an hour, few samples", ask(func(q *fleet.SlowQuery) { q.Since, q.MinSamples = time.Hour, 1 }), "[few.example closed 19 slow.example closed 30]")
	same(t, "one of them", ask(func(q *fleet.SlowQuery) { q.Endpoint = "https://slow.example" }), "[slow.example closed 30]")
	same(t, "one that is not", ask(func(q *fleet.SlowQuery) { q.Endpoint = "https://few.example" }), "[]")
	same(t, "higher", ask(func(q *fleet.SlowQuery) { q.OverP95 = 10 * time.Second }), "[]")
}

func TestPercentiles(t *testing.T) {
	c := newCrowd(t)
	for i := range 100 {
		c.write(delivered("https://a.example", 1, time.Duration(i+1)*10*time.Millisecond, time.Hour)...)
	}
	c.write(delivered("https://b.example", 1, 7*time.Millisecond, time.Hour)...)
	list := must[[]pgstore.Percentiles](t)(c.fleet.Percentiles(t.Context(), "", 2*time.Hour))
	if len(list) != 2 || *list[0].P50MS != 505 || *list[0].P95MS != 950.5 || *list[0].P99MS != 990.1 || list[0].SampleCount != 100 || !list[0].Exact {
		t.Errorf("all: %+v", list)
	}
	c.db.Exec(`UPDATE maintenance SET raw_from = now()`)
	list = must[[]pgstore.Percentiles](t)(c.fleet.Percentiles(t.Context(), "https://b.example", 2*time.Hour))
	if len(list) != 1 || list[0].Exact || *list[0].P95MS < 6.9 || *list[0].P95MS > 7.1 {
		t.Errorf("merged: %+v", list)
	}
	if list = must[[]pgstore.Percentiles](t)(c.fleet.Percentiles(t.Context(), "https://b.example", time.Millisecond)); list == nil {
		t.Error("no samples are no list")
	}
}

func TestDeadLetters(t *testing.T) {
	c := newCrowd(t)
	c.alive(1, "https://limit.example")
	c.alive(2, "https://limit.example")
	for _, rows := range [][]pgstore.Row{
		dead("https://down.example", 60, time.Hour, 30*time.Second, 503, "http_503"),
		dead("https://keys.example", 2, time.Hour, time.Minute, 401, "http_401"),
		dead("https://limit.example", 3, time.Minute, 0, 429, "http_429"),
		delivered("https://limit.example", 40, time.Millisecond, time.Minute),
		dead("https://drip.example", 8, time.Hour, 170*time.Minute, 0, "timeout"),
		dead("https://old.example", 9, 30*time.Hour, time.Minute, 503, "http_503"),
	} {
		c.write(rows...)
	}
	eu, us := dead("https://eu.example/pb", 1, time.Hour, 0, 403, "http_403"), dead("https://us.example/pb", 1, time.Hour, 0, 0, "connect")
	eu[0].EndpointName, us[0].EndpointName = "partner-a", "partner-a"
	c.write(eu[0], us[0])
	expired := event("https://limit.example", time.Hour)
	expired.Version, expired.Status, expired.DeadReason, expired.NextAttempt = 2, "dead_letter", "expired", time.Time{}
	c.write(expired)

	l := must[fleet.Letters](t)(c.fleet.DeadLetters(t.Context(), "", 24*time.Hour))
	var got []string
	for _, a := range l.Endpoints {
		line := fmt.Sprint(strings.TrimPrefix(a.EndpointURL, "https://"), " ", a.DeadCount, " ", a.PrimaryError)
		for _, f := range a.Findings {
			line += " " + string(f.Pattern)
			if f.Action == "" {
				t.Errorf("%s: no action", line)
			}
		}
		got = append(got, line)
	}
	want := []string{
		"down.example 60 http_503 cluster", "drip.example 8 timeout trickle", "limit.example 4 http_429 throttled", "keys.example 2 http_401 credentials",
		"eu.example/pb 1 http_403 credentials", "us.example/pb 1 connect",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	throttled := l.Endpoints[2].Findings[0]
	if throttled.SuggestedLimit != "20/1m" || !strings.Contains(throttled.Action, `all 2 instances together: give each of them "20/1m"`) {
		t.Errorf("40 a minute over two instances: %+v", throttled)
	}
	one := must[fleet.Letters](t)(c.fleet.DeadLetters(t.Context(), "partner-a", 24*time.Hour))
	if len(one.Endpoints) != 2 || one.Endpoints[0].Endpoint != "partner-a" {
		t.Errorf("one name for two URLs: %+v", one.Endpoints)
	}
	if l := must[fleet.Letters](t)(c.fleet.DeadLetters(t.Context(), "https://old.example", 24*time.Hour)); l.Endpoints == nil || len(l.Endpoints) != 0 {
		t.Errorf("none: %+v", l.Endpoints)
	}
}

func TestDeadLettersOfAClockThatIsAhead(t *testing.T) {
	c := newCrowd(t)
	c.write(dead("https://ahead.example", 55, -time.Hour, 30*time.Second, 503, "http_503")...)
	l := must[fleet.Letters](t)(c.fleet.DeadLetters(t.Context(), "", 24*time.Hour))
	if len(l.Endpoints) != 1 || l.Endpoints[0].DeadCount != 55 || len(l.Endpoints[0].Findings) != 1 {
		t.Errorf("%+v", l.Endpoints)
	}
}
