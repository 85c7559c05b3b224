package trend_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"postern/proxy/trend"
)

var now = time.Date(2000, 1, 1, 12, 10, 0, 0, time.UTC)

// series has a point for each half hour, the last of them the one that now lies in.
func series(p95 ...float64) []trend.Point {
	var out []trend.Point
	for i, ms := range p95 {
		start := now.Truncate(30 * time.Minute).Add(time.Duration(i-len(p95)+1) * 30 * time.Minute)
		out = append(out, trend.Point{Start: start, P50: ms / 2, P95: ms, Count: 30})
	}
	return out
}

func TestOf(t *testing.T) {
	few := series(100, 100, 100, 400, 400)
	few[3].Count, few[4].Count = 9, 10
	lone := series(100, 100, 100)
	lone[0].Count = 19
	for name, tc := range map[string]struct {
		points []trend.Point
		want   trend.State
	}{
		"nothing":                   {nil, trend.Unknown},
		"only now":                  {series(100, 100), trend.Unknown},
		"steady":                    {series(100, 110, 90, 120, 130), trend.Steady},
		"slowing":                   {series(100, 110, 90, 150, 180), trend.Slowing},
		"one bad half hour before":  {series(100, 5000, 100, 100, 300, 300), trend.Slowing},
		"slow as ever":              {series(4000, 4000, 4000, 4100, 4000), trend.Steady},
		"twice nothing":             {series(1, 1, 1, 3, 3), trend.Steady},
		"faster":                    {series(400, 400, 400, 100, 100), trend.Faster},
		"too few now":               {few, trend.Unknown},
		"too few before":            {lone, trend.Unknown},
		"last steps without points": {series(100, 100, 100, 900, 900)[:3], trend.Unknown},
	} {
		if got := trend.Of(tc.points, 30*time.Minute, now); got.State != tc.want {
			t.Errorf("%s: %s, want %s", name, got.State, tc.want)
		}
	}
	got := trend.Of(series(100, 200, 300, 400, 500, 700), 30*time.Minute, now)
	if *got.EarlierP95 != 250 || *got.RecentP95 != 600 {
		t.Errorf("recent %v, earlier %v", *got.RecentP95, *got.EarlierP95)
	}
}

// Slower answers now never turn a slowing endpoint into another one, and the order of points says nothing.
func TestMonotony(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(rapid.Float64Range(0, 10_000), 1, 40).Draw(t, "before")
		recent := rapid.Float64Range(0, 10_000).Draw(t, "recent")
		more := rapid.Float64Range(0, 10_000).Draw(t, "more")
		slow := trend.Of(series(append(before, recent, recent)...), 30*time.Minute, now)
		slower := rapid.Permutation(series(append(before, recent+more, recent+more)...)).Draw(t, "points")
		if got := trend.Of(slower, 30*time.Minute, now); slow.State == trend.Slowing && got.State != trend.Slowing {
			t.Fatalf("%v more: %s", more, got.State)
		}
	})
}
