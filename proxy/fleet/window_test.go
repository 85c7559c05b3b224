package fleet_test

import (
	"testing"
	"time"

	"postern/proxy/fleet"
	"postern/proxy/retry"
	"postern/sync/pgstore"
)

func TestRetryWindow(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	for _, tc := range []struct {
		name   string
		policy retry.Policy
		want   pgstore.Window
	}{
		{"one attempt", retry.Policy{}, pgstore.Window{Longest: 15 * s, Attempts: 1, Step: 15 * s}},
		{
			"the defaults", retry.Policy{MaxAttempts: 5, BaseDelay: 30 * s, MaxDelay: h, MaxRetryAfter: h},
			pgstore.Window{Longest: 5*15*s + (30+60+120+240)*s + 4*h, Attempts: 5, Step: 15*s + 480*s + h},
		},
		{
			"no Retry-After", retry.Policy{MaxAttempts: 3, BaseDelay: m, MaxDelay: 90 * s},
			pgstore.Window{Longest: 3*15*s + m + 90*s, Attempts: 3, Step: 15*s + 90*s},
		},
		{
			"a schedule", retry.Policy{HasSchedule: true, Schedule: []time.Duration{5 * s, 6 * h}},
			pgstore.Window{Longest: 3*15*s + 5*s + 6*h, Attempts: 3, Step: 15*s + 6*h},
		},
		{
			"more than a clock can tell", retry.Policy{MaxAttempts: 100, BaseDelay: 1 << 62, MaxDelay: 1 << 62, MaxRetryAfter: 1 << 62},
			pgstore.Window{Longest: 10 * 365 * 24 * h, Attempts: 100, Step: 10 * 365 * 24 * h},
		},
	} {
		if got := fleet.RetryWindow(tc.policy, 15*s); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", tc.name, got, tc.want)
		}
	}
}
