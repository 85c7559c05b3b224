package retry_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"postern/proxy/retry"
	"postern/spool"
)

var policy = retry.Policy{MaxAttempts: 5, BaseDelay: 30 * time.Second, MaxDelay: time.Hour, MaxRetryAfter: time.Hour}

func TestOutcome(t *testing.T) {
	only := retry.Policy{Statuses: []int{302, 404, 410}}
	never := retry.Policy{Statuses: []int{}}
	for _, c := range []struct {
		policy retry.Policy
		class  retry.Class
		status int
		want   retry.Outcome
	}{
		{policy, retry.Delivered, 204, retry.OutcomeDelivered},
		{policy, retry.DNS, 0, retry.OutcomeTransient},
		{policy, retry.Connect, 0, retry.OutcomeTransient},
		{policy, retry.TLS, 0, retry.OutcomeTransient},
		{policy, retry.Timeout, 0, retry.OutcomeTransient},
		{policy, retry.Timeout, 200, retry.OutcomeTransient},
		{policy, retry.Connection, 200, retry.OutcomeTransient},
		{policy, retry.BodyRule, 200, retry.OutcomeTransient},
		{policy, retry.BlockedAddress, 0, retry.OutcomePermanent},
		{policy, retry.InvalidRequest, 0, retry.OutcomePermanent},
		{policy, retry.HTTP(302), 302, retry.OutcomePermanent},
		{policy, retry.HTTP(101), 101, retry.OutcomePermanent},
		{policy, retry.HTTP(400), 400, retry.OutcomePermanent},
		{policy, retry.HTTP(404), 404, retry.OutcomePermanent},
		{policy, retry.HTTP(408), 408, retry.OutcomeTransient},
		{policy, retry.HTTP(410), 410, retry.OutcomePermanent},
		{policy, retry.HTTP(425), 425, retry.OutcomeTransient},
		{policy, retry.HTTP(429), 429, retry.OutcomeTransient},
		{policy, retry.HTTP(500), 500, retry.OutcomeTransient},
		{policy, retry.HTTP(501), 501, retry.OutcomeTransient},
		{policy, retry.HTTP(599), 599, retry.OutcomeTransient},
		{policy, retry.HTTP(799), 799, retry.OutcomeTransient},
		{policy, retry.HTTP(99), 99, retry.OutcomeTransient}, // no status that there is, as one over 599
		{policy, retry.HTTP(0), 0, retry.OutcomeTransient},
		{only, retry.HTTP(503), 503, retry.OutcomePermanent},
		{only, retry.HTTP(404), 404, retry.OutcomeTransient},
		{only, retry.HTTP(302), 302, retry.OutcomeTransient},
		{only, retry.BodyRule, 200, retry.OutcomeTransient},
		{never, retry.HTTP(503), 503, retry.OutcomePermanent},
		{never, retry.Connect, 0, retry.OutcomeTransient},
	} {
		if got := c.policy.Outcome(c.class, c.status); got != c.want {
			t.Errorf("%s %d under %v: %s, want %s", c.class, c.status, c.policy.Statuses, got, c.want)
		}
	}
}

func TestHTTPClass(t *testing.T) {
	for status, want := range map[int]retry.Class{0: "http_000", 99: "http_099", 299: "http_299", 300: "redirect", 399: "redirect", 400: "http_400", 503: "http_503"} {
		if got := retry.HTTP(status); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
}

func TestDecide(t *testing.T) {
	failing := func(status, charged int) retry.Input {
		return retry.Input{Class: retry.HTTP(status), Status: status, Charged: charged, Since: noon, Now: noon, Rand: bottom}
	}
	with := func(in retry.Input, change func(*retry.Input)) retry.Input {
		change(&in)
		return in
	}
	retried := func(d time.Duration) retry.Decision { return retry.Decision{Verdict: retry.VerdictRetry, Delay: d} }
	dead := func(why retry.Reason) retry.Decision { return retry.Decision{Verdict: retry.VerdictDead, Reason: why} }
	asks := func(d time.Duration) func(*retry.Input) {
		return func(in *retry.Input) { in.RetryAfter, in.HasRetryAfter = d, true }
	}
	for _, c := range []struct {
		name string
		in   retry.Input
		want retry.Decision
	}{
		{"delivered", retry.Input{Status: 200, Charged: 9}, retry.Decision{Verdict: retry.VerdictDelivered}},
		{"delivered late", retry.Input{Status: 200, Charged: 1, Since: noon, TTL: 1, Now: noon.Add(time.Hour)},
			retry.Decision{Verdict: retry.VerdictDelivered}},
		{"first failure", failing(503, 1), retried(0)},
		{"jitter", with(failing(503, 2), func(in *retry.Input) { in.Rand = top }), retried(time.Minute)},
		{"last failure", failing(503, 5), dead(retry.ReasonExhausted)},
		{"beyond the last", failing(503, 6), dead(retry.ReasonExhausted)},
		{"fewer for this event", with(failing(503, 2), func(in *retry.Input) { in.MaxAttempts = 2 }), dead(retry.ReasonExhausted)},
		{"more for this event", with(failing(503, 5), func(in *retry.Input) { in.MaxAttempts = 6 }), retried(0)},
		{"gone", failing(410, 1), dead(retry.ReasonGone)},
		{"permanent", failing(404, 1), dead(retry.ReasonPermanent)},
		{"redirect", failing(307, 1), dead(retry.ReasonPermanent)},
		{"blocked", retry.Input{Class: retry.BlockedAddress, Charged: 1}, dead(retry.ReasonPermanent)},

		{"Retry-After is a floor", with(failing(503, 1), asks(2*time.Second)), retried(2 * time.Second)},
		{"with the jitter on top", with(with(failing(429, 1), asks(2*time.Second)), func(in *retry.Input) { in.Rand = top }),
			retried(32 * time.Second)},
		{"capped", with(failing(429, 1), asks(1<<62)), retried(time.Hour)},
		{"not on 500", with(failing(500, 1), asks(2*time.Second)), retried(0)},
		{"not on a body rule", with(retry.Input{Class: retry.BodyRule, Status: 200, Charged: 1, Rand: bottom}, asks(time.Second)), retried(0)},
		{"negative", with(failing(429, 1), asks(-time.Second)), retried(0)},

		{"TTL ahead", with(failing(503, 1), func(in *retry.Input) { in.TTL = time.Minute }), retried(0)},
		{"TTL passed", with(failing(503, 1), func(in *retry.Input) { in.TTL = time.Minute; in.Now = noon.Add(time.Minute) }),
			dead(retry.ReasonExpired)},
		{"TTL passes before the next attempt", with(failing(503, 1), func(in *retry.Input) { in.TTL = 20 * time.Second; in.Rand = top }),
			retried(30 * time.Second)},
		{"TTL passes during Retry-After", with(with(failing(503, 1), asks(time.Minute)), func(in *retry.Input) { in.TTL = time.Minute }),
			retried(time.Minute)},
		{"TTL for ever", with(failing(503, 1), func(in *retry.Input) { in.TTL = 1<<63 - 1 }), retried(0)},
	} {
		if got := retry.Decide(policy, c.in); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestAnEventEnds follows events through random failures: each ends, and within its budget.
func TestAnEventEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := retry.Policy{
			MaxAttempts:   rapid.IntRange(1, 200).Draw(t, "attempts"),
			BaseDelay:     time.Duration(rapid.Int64Range(1, 1<<40).Draw(t, "base")),
			MaxDelay:      time.Duration(rapid.Int64Range(1, 1<<42).Draw(t, "max")),
			MaxRetryAfter: time.Duration(rapid.Int64Range(0, 1<<42).Draw(t, "cap")),
		}
		ttl := time.Duration(rapid.Int64Range(0, 1<<45).Draw(t, "ttl"))
		now := noon
		for charged := 1; ; charged++ {
			asked := time.Duration(rapid.Int64().Draw(t, "asked"))
			d := retry.Decide(p, retry.Input{Class: retry.HTTP(503), Status: 503, Charged: charged, Since: noon, TTL: ttl, Now: now,
				RetryAfter: asked, HasRetryAfter: rapid.Bool().Draw(t, "has")})
			if d.Verdict == retry.VerdictDead {
				if d.Reason == retry.ReasonExhausted && charged != p.MaxAttempts {
					t.Fatalf("exhausted after %d of %d", charged, p.MaxAttempts)
				}
				return
			}
			if d.Delay < 0 || d.Delay > p.MaxDelay+p.MaxRetryAfter || charged >= p.MaxAttempts {
				t.Fatalf("attempt %d of %d: delay %v", charged, p.MaxAttempts, d.Delay)
			}
			if ttl > 0 && !now.Before(noon.Add(ttl)) {
				t.Fatal("retried after the TTL")
			}
			now = now.Add(d.Delay)
		}
	})
}

func TestReasonsAreTheSpools(t *testing.T) {
	for mine, theirs := range map[retry.Reason]string{
		retry.ReasonExhausted: spool.ReasonExhausted, retry.ReasonExpired: spool.ReasonExpired,
		retry.ReasonPermanent: spool.ReasonPermanent, retry.ReasonGone: spool.ReasonGone,
	} {
		if string(mine) != theirs {
			t.Errorf("%q here, %q in the spool", mine, theirs)
		}
	}
}
