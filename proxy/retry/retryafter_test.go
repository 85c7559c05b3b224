package retry_test

import (
	"testing"
	"time"

	"postern/proxy/retry"
)

var noon = time.Date(2026, time.March, 7, 12, 0, 0, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	for _, c := range []struct {
		value string
		now   time.Time
		least time.Duration // zero: not ok
		most  time.Duration
	}{
		{"2", noon, 2 * time.Second, 2 * time.Second},
		{" 120\t", noon, 2 * time.Minute, 2 * time.Minute},
		{"007", noon, 7 * time.Second, 7 * time.Second},
		{"999999999999", noon, 24 * time.Hour, 1 << 62},
		{"9223372036854775807", noon, 24 * time.Hour, 1 << 62},
		{"99999999999999999999999999", noon, 24 * time.Hour, 1 << 62},
		{"Sat, 07 Mar 2026 12:00:02 GMT", noon, 2 * time.Second, 3 * time.Second},
		{"Saturday, 07-Mar-26 12:00:02 GMT", noon, 2 * time.Second, 3 * time.Second},
		{"Sat Mar  7 12:00:02 2026", noon, 2 * time.Second, 3 * time.Second},
		{"Sun, 07 Mar 2027 12:00:00 GMT", noon, 365 * 24 * time.Hour, 366 * 24 * time.Hour},
		{"Fri, 31 Dec 9999 23:59:59 GMT", noon, 24 * time.Hour, 1 << 62},
		// Two seconds ahead of noon and 0.9 s, written without the fraction: the wait is not shortened by it.
		{"Sat, 07 Mar 2026 12:00:02 GMT", noon.Add(900 * time.Millisecond), 1900 * time.Millisecond, 3 * time.Second},
		{"Sat, 07 Mar 2026 12:00:02 GMT", noon.In(time.FixedZone("", 3600)), 2 * time.Second, 3 * time.Second},
		{"Sat, 07 Mar 2026 12:00:00 GMT", noon, 0, 0},
		{"Sat, 07 Mar 2026 11:59:59 GMT", noon, 0, 0},
		{"Sat, 07 Mar 2026 12:00:02 CET", noon, 0, 0},
		{"Sat, 07 Mar 2026 12:00:02 +0000", noon, 0, 0},
		{"2026-03-07T12:00:02Z", noon, 0, 0},
		{"-5", noon, 0, 0},
		{"+5", noon, 0, 0},
		{"1.5", noon, 0, 0},
		{"1e3", noon, 0, 0},
		{"1_000", noon, 0, 0},
		{"0x10", noon, 0, 0},
		{"2, 3", noon, 0, 0},
		{"2s", noon, 0, 0},
		{"abc", noon, 0, 0},
		{"", noon, 0, 0},
		{"٣", noon, 0, 0},
	} {
		got, ok := retry.ParseRetryAfter(c.value, c.now)
		if ok != (c.least > 0) || got < c.least || got > c.most {
			t.Errorf("%q: %v, %v; want %v to %v", c.value, got, ok, c.least, c.most)
		}
	}
	if got, ok := retry.ParseRetryAfter("0", noon); got != 0 || !ok {
		t.Errorf("0: %v, %v; it is valid and asks for nothing", got, ok)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{"2", "-1", "1.5", "abc", "99999999999999999999", "Sat, 07 Mar 2026 12:00:02 GMT",
		"Saturday, 07-Mar-26 12:00:02 GMT", "Sat Mar  7 12:00:02 2026", "Fri, 31 Dec 9999 23:59:59 GMT", " 5 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, ok := retry.ParseRetryAfter(value, noon)
		if got < 0 || (!ok && got != 0) {
			t.Fatalf("%q: %v, %v", value, got, ok)
		}
		if got+time.Hour < got {
			t.Fatalf("%q: %v is so long that sums with it overflow", value, got)
		}
		p := retry.Policy{MaxRetryAfter: time.Minute}
		if floor := p.RetryAfterFloor(429, got, ok); floor > time.Minute {
			t.Fatalf("%q: floor %v is over the cap", value, floor)
		}
	})
}
