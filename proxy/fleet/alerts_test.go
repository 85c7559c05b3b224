package fleet_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"postern/proxy/fleet"
	"postern/sync/pgstore"
)

// firing is what fires, and where.
func firing(a fleet.Alerts) (out []string) {
	for _, alert := range a.Alerts {
		out = append(out, alert.Name+" "+strings.TrimPrefix(alert.Endpoint, "https://"))
	}
	return out
}

func TestACalmFleet(t *testing.T) {
	c := newCrowd(t)
	a := must[fleet.Alerts](t)(c.fleet.Alerts(t.Context(), usual()))
	if a.Firing || a.Alerts == nil || a.LiveInstances != 0 || time.Since(a.CheckedAt).Abs() > time.Minute {
		t.Errorf("an empty fleet: %+v", a)
	}
	c.alive(1, "https://a.example")
	c.write(delivered("https://a.example", 50, 100*time.Millisecond, time.Hour)...)
	c.write(delivered("https://a.example", 50, 90*time.Millisecond, 30*time.Hour)...)
	c.write(event("https://a.example", 5*time.Minute))
	c.write(dead("https://a.example", 3, 90*time.Minute, time.Second, 404, "http_404")...) // fewer than before: none
	failed := event("https://a.example", 3*time.Hour)
	failed.Version, failed.Status, failed.Attempts = 2, "failed", 2
	c.write(failed)
	a = must[fleet.Alerts](t)(c.fleet.Alerts(t.Context(), usual()))
	if a.Firing || len(a.Alerts) != 0 || a.LiveInstances != 1 {
		t.Errorf("a calm fleet: %+v", a)
	}
}

func TestEachAlertFires(t *testing.T) {
	startNow()
	for _, tc := range []struct {
		name   string
		rows   [][]pgstore.Row
		change func(*fleet.Thresholds)
		want   []string
		says   string
	}{
		{
			"dead letters grow", [][]pgstore.Row{
				dead("https://more.example", 4, time.Minute, time.Second, 503, "http_503"), dead("https://more.example", 2, 70*time.Minute, time.Second, 503, "http_503"),
				dead("https://same.example", 2, time.Minute, time.Second, 503, "http_503"), dead("https://same.example", 2, 70*time.Minute, time.Second, 503, "http_503"),
			}, nil, []string{"dead_letters_growing more.example"}, "4 given up in the last 1h, 2 in the 1h before",
		},
		{
			"fewer than asked for", [][]pgstore.Row{dead("https://few.example", 4, time.Minute, time.Second, 503, "http_503")},
			func(t *fleet.Thresholds) { t.DeadLetters = 5 }, nil, "",
		},
		{
			"the queue is old", [][]pgstore.Row{{event("https://waits.example", 40*time.Minute), event("https://waits.example", 35*time.Minute), event("https://ok.example", 20*time.Minute)}},
			nil, []string{"queue_age waits.example"}, "2 events never tried for over 30m, the oldest of them for 4",
		},
		{
			"p95 over its threshold", [][]pgstore.Row{
				delivered("https://slow.example", 20, 3*time.Second, time.Hour), delivered("https://few.example", 19, 3*time.Second, time.Hour),
				delivered("https://fast.example", 20, 1900*time.Millisecond, time.Hour),
			}, nil, []string{"p95_over_threshold slow.example"}, "of 20 samples in the last 24h, over 2000 ms",
		},
		{
			"p95 over four times that of the day before", [][]pgstore.Row{
				delivered("https://jump.example", 30, 500*time.Millisecond, time.Hour), delivered("https://jump.example", 30, 100*time.Millisecond, 26*time.Hour),
				delivered("https://rise.example", 30, 390*time.Millisecond, time.Hour), delivered("https://rise.example", 30, 100*time.Millisecond, 26*time.Hour),
				delivered("https://new.example", 30, 500*time.Millisecond, time.Hour), delivered("https://new.example", 19, 100*time.Millisecond, 26*time.Hour),
			}, nil, []string{"p95_jump jump.example"}, "over 4 times",
		},
		{
			"within an hour", [][]pgstore.Row{
				delivered("https://jump.example", 30, 500*time.Millisecond, 10*time.Minute), delivered("https://jump.example", 300, 100*time.Millisecond, 10*time.Hour),
				delivered("https://jump.example", 30, 100*time.Millisecond, 24*time.Hour+20*time.Minute),
			}, func(t *fleet.Thresholds) { t.Since = time.Hour }, []string{"p95_jump jump.example"}, "",
		},
		{
			"an event is stuck", [][]pgstore.Row{stuck("https://stuck.example", 5*time.Hour), stuck("https://young.example", 4*time.Hour)},
			nil, []string{"stuck_event stuck.example"}, "1 event older than the longest retry window (4h8m45s)",
		},
		{
			"another window", [][]pgstore.Row{stuck("https://stuck.example", 5*time.Hour)},
			func(t *fleet.Thresholds) {
				t.Windows.ByURL = map[string]pgstore.Window{"https://stuck.example": {Longest: 6 * time.Hour, Attempts: 5}}
			}, nil, "",
		},
		{
			"one endpoint alone", [][]pgstore.Row{stuck("https://stuck.example", 5*time.Hour), {event("https://waits.example", 40*time.Minute)}},
			func(t *fleet.Thresholds) { t.Endpoint = "https://waits.example/" }, []string{"queue_age waits.example"}, "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCrowd(t)
			c.alive(1)
			for _, rows := range tc.rows {
				c.write(rows...)
			}
			limits := usual()
			if tc.change != nil {
				tc.change(&limits)
			}
			a := must[fleet.Alerts](t)(c.fleet.Alerts(t.Context(), limits))
			same(t, "alerts", firing(a), fmt.Sprint(tc.want))
			if a.Firing != (len(tc.want) > 0) {
				t.Errorf("firing: %v", a.Firing)
			}
			for _, alert := range a.Alerts {
				if alert.Value < alert.Threshold || alert.Unit == "" || alert.Action == "" || !strings.Contains(alert.Message, tc.says) {
					t.Errorf("%+v\ndoes not say %q", alert, tc.says)
				}
			}
		})
	}
}

// stuck is an event whose retries ended without an end.
func stuck(url string, ago time.Duration) []pgstore.Row {
	r := event(url, ago)
	r.Version, r.Status, r.Attempts = 2, "failed", 3
	r.Attempt = &pgstore.Attempt{Number: 3, EndedAt: now.Add(10*time.Minute - ago), StatusCode: 503, Error: "http_503"}
	r.NextAttempt = now.Add(12*time.Minute - ago)
	return []pgstore.Row{r}
}

func TestAnEventOfAnInstanceThatHasGone(t *testing.T) {
	c := newCrowd(t)
	c.write(event("https://a.example", time.Hour))
	a := must[fleet.Alerts](t)(c.fleet.Alerts(t.Context(), usual()))
	if len(a.Alerts) != 1 || !strings.Contains(a.Alerts[0].Action, instanceID(1)+" is not alive") {
		t.Errorf("%+v", a.Alerts)
	}
}

func TestUnknownEndpoint(t *testing.T) {
	c := newCrowd(t)
	_, alerts := c.fleet.Alerts(t.Context(), fleet.Thresholds{Endpoint: "nobody"})
	_, status := c.fleet.Status(t.Context(), "nobody", time.Hour)
	_, slow := c.fleet.Slow(t.Context(), fleet.SlowQuery{Endpoint: "nobody"})
	_, percentiles := c.fleet.Percentiles(t.Context(), "nobody", time.Hour)
	_, letters := c.fleet.DeadLetters(t.Context(), "nobody", time.Hour)
	for i, err := range []error{alerts, status, slow, percentiles, letters} {
		if !errors.Is(err, fleet.ErrUnknownEndpoint) || !strings.Contains(err.Error(), `"nobody"`) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestNoSchema(t *testing.T) {
	c := newCrowd(t)
	if err := c.instance(1).MigrateDown(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	_, err := c.fleet.Alerts(t.Context(), usual())
	if err == nil || !strings.Contains(err.Error(), "postern sync migrate") {
		t.Errorf("without any table: %v", err)
	}
}
