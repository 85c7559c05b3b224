package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/proxy/findings"
	"postern/proxy/fleet"
	"postern/sync/pgstore"
)

// somehowDead makes dead letters of one endpoint in one of the shapes that matter, with the bounds of the rules among
// them. Times are half a minute beside whole minutes before now, so that a test that takes a while meets no other hour.
func somehowDead(rng *rand.Rand, url string) (rows []pgstore.Row) {
	type letter struct {
		minutes, status, attempts int
		class                     string
	}
	kinds := []letter{{class: "timeout", attempts: 5}, {class: "connect", attempts: 1}, {status: 503, class: "http_503", attempts: 5}, {status: 404, class: "http_404", attempts: 1},
		{status: 401, class: "http_401", attempts: 1}, {status: 429, class: "http_429", attempts: 5}, {status: 409, class: "http_409", attempts: 2}, {status: 200, class: "body_rule", attempts: 1}}
	kinds = kinds[:1+rng.IntN(len(kinds))]
	rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	kinds = kinds[:1+rng.IntN(min(3, len(kinds)))]
	var list []letter
	add := func(n, start, step int) {
		for i := range n {
			l := kinds[rng.IntN(len(kinds))]
			if l.minutes = start - i*step; l.minutes >= 0 {
				list = append(list, l)
			}
		}
	}
	for range 1 + rng.IntN(3) {
		switch rng.IntN(5) {
		case 0: // an outage, or nearly one
			add(45+rng.IntN(20), rng.IntN(1400), rng.IntN(3))
		case 1: // evenly
			add(2+rng.IntN(50), 1200+rng.IntN(239), 20+rng.IntN(500))
		case 2: // to the minute half of the time, or nearly
			add(3, 720+rng.IntN(600), 359+rng.IntN(3))
		case 3: // a few, two of them in one hour
			at := 60 * rng.IntN(10)
			add(2, at+59, 59)
			add(1+rng.IntN(3), at+900, 60+rng.IntN(120))
		default:
			for range rng.IntN(40) {
				add(1, rng.IntN(1440), 1)
			}
		}
	}
	for _, l := range list {
		row := dead(url, 1, time.Duration(l.minutes)*time.Minute+30*time.Second, 0, l.status, l.class)[0]
		row.Attempts = l.attempts
		rows = append(rows, row)
	}
	return rows
}

// TestTheViewsAgree holds the views dead_letter_findings and dead_letter_analysis against the analysis that the command
// line shows, over the same rows.
func TestTheViewsAgree(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c, rng := newCrowd(t), rand.New(rand.NewPCG(seed, 0))
			for i := range 80 {
				c.write(somehowDead(rng, fmt.Sprintf("https://p%02d.example", i))...)
			}
			expired := event("https://expired.example", time.Hour)
			expired.Version, expired.Status, expired.DeadReason, expired.NextAttempt = 2, "dead_letter", "expired", time.Time{}
			c.write(expired)
			agree(t, c, findings.Cluster, findings.Credentials, findings.Throttled, findings.Trickle)
		})
	}
	t.Run("a clock that is ahead", func(t *testing.T) {
		c := newCrowd(t)
		c.write(dead("https://ahead.example", 8, -2*time.Hour, 113*time.Minute, 503, "http_503")...)
		c.write(dead("https://behind.example", 8, 30*time.Minute, 106*time.Minute, 503, "http_503")...)
		agree(t, c, findings.Trickle)
	})
}

func agree(t *testing.T, c *crowd, patterns ...findings.Pattern) {
	t.Helper()
	letters := must[fleet.Letters](t)(c.fleet.DeadLetters(t.Context(), "", 24*time.Hour))
	var found, analyses []string
	shown := func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05.000000") }
	for _, a := range letters.Endpoints {
		code := "null"
		if a.PrimaryStatusCode != nil {
			code = fmt.Sprint(*a.PrimaryStatusCode)
		}
		analyses = append(analyses, fmt.Sprintf("%s %d %s %s %s %s %.2f", a.EndpointURL, a.DeadCount, a.PrimaryError, code, shown(a.FirstDead), shown(a.LastDead), a.AvgAttempts))
		for _, f := range a.Findings {
			refused := f.Pattern == findings.Cluster && strings.HasPrefix(f.Action, "Most of them were refused")
			found = append(found, fmt.Sprintf("%s %s %d %s %s %v", a.EndpointURL, f.Pattern, f.Count, shown(f.From), shown(f.Until), refused))
		}
	}
	const us = `'YYYY-MM-DD HH24:MI:SS.US'`
	compare(t, "findings", found, c.db.Rows(`SELECT concat_ws(' ', endpoint_url, finding, event_count, to_char(first_dead, `+us+`), to_char(last_dead, `+us+`),
		CASE WHEN action LIKE 'Most of them were refused%' THEN 'true' ELSE 'false' END) FROM dead_letter_findings`))
	compare(t, "analyses", analyses, c.db.Rows(`SELECT concat_ws(' ', endpoint_url, dead_count, primary_error, coalesce(primary_status_code::text, 'null'),
		to_char(first_dead, `+us+`), to_char(last_dead, `+us+`), avg_attempts) FROM dead_letter_analysis`))
	for _, p := range patterns {
		n := 0
		for _, line := range found {
			if strings.Contains(line, " "+string(p)+" ") {
				n++
			}
		}
		if n == 0 {
			t.Errorf("no %s was compared in %d findings", p, len(found))
		}
	}
}

func compare(t *testing.T, what string, want []string, rows [][]string) {
	t.Helper()
	var got []string
	for _, row := range rows {
		got = append(got, row[0])
	}
	slices.Sort(got)
	slices.Sort(want)
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s: only the view has %s", what, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s: the view has no %s", what, line)
		}
	}
}
