package cli

import (
	"strings"
	"testing"
	"time"

	"postern/proxy/client"
)

// TestNoteSaysWhatAnEndpointWaitsFor: a person's pause and trouble come first.
func TestNoteSaysWhatAnEndpointWaitsFor(t *testing.T) {
	s := &session{Process: Process{now: func() time.Time { return noon }}}
	e := client.Endpoint{Name: "a", Configured: true, Limiter: client.Limiter{HeldBy: "slots"}}
	if got := s.note(e).Text; !strings.Contains(got, "waits for a slot") {
		t.Errorf("note %q", got)
	}
	for _, reason := range []string{"", "breaker_open", "reserving"} {
		e.Limiter.HeldBy = reason
		if got := s.note(e).Text; got != "" {
			t.Errorf("%s has the note %q", reason, got)
		}
	}
	e.ShareFull = true
	if got := s.note(e).Text; got != shareFull {
		t.Errorf("note %q", got)
	}
	e.Limiter.HeldBy, e.Paused, e.PauseReason = "slots", true, "moving"
	if got := s.note(e).Text; got != shareFull+"; paused: moving" {
		t.Errorf("note %q", got)
	}
	e.ShareFull = false
	if got := s.note(e).Text; got != "paused: moving" {
		t.Errorf("note %q", got)
	}
}

// TestWhatHoldsADueEventBack: an event whose time has come says why it has not left, in the words of its endpoint's note.
func TestWhatHoldsADueEventBack(t *testing.T) {
	f := newFake(t, answers())
	due := strings.Replace(event, "12:00:30", "11:59:45", 1)
	f.answers["GET /api/v1/events/evt_1"] = due + `,"attempts":[]}`
	f.answers["GET /api/v1/events?limit=50"] = `{"events":[` + due + `}],"next_cursor":null}`
	for says, held := range map[string][2]string{
		"breaker open: next try 12:03:00 (in 3m)":           {},
		"breaker open: next try now":                        {`"cooldown_seconds":300`, `"cooldown_seconds":60`},
		"throttled until 12:01:00 (in 1m)":                  {`"state":"open"`, `"state":"closed"`},
		"paused by hand":                                    {`"paused":false,"pause_reason":null`, `"paused":true,"pause_reason":"paused by hand"`},
		"its limits are used up until 12:00:40 (in 40s)":    {`"open"`, `"closed"`},
		"not in the configuration any more":                 {`"configured":true`, `"configured":false`},
		"breaker half open: one attempt at a time tries it": {`"open"`, `"half_open"`},
	} {
		e := strings.Replace(endpoint, held[0], held[1], 1)
		switch {
		case strings.HasPrefix(says, "its limits"):
			e = strings.Replace(e, `"throttled_until":"2026-03-04T12:01:00Z","next_allowed_at":null`, `"throttled_until":null,"next_allowed_at":"2026-03-04T12:00:40Z","held_by":"rate_limited"`, 1)
		case strings.HasPrefix(says, "not in"):
			e = strings.Replace(strings.Replace(e, `"open"`, `"closed"`, 1), `"2026-03-04T12:01:00Z"`, "null", 1)
		case strings.HasPrefix(says, "breaker half"):
			e = strings.Replace(e, `"throttled_until":"2026-03-04T12:01:00Z"`, `"held_by":"probing","throttled_until":null`, 1)
		}
		f.answers["GET /api/v1/endpoints/partner-a"] = e
		got := f.on(t, "events show evt_1")
		want := "next attempt  due since 11:59:45 (15s ago)\nheld back     " + says + "\n"
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("%q is not in\n%s%s", want, got.stdout, got.stderr)
		}
		if note := f.on(t, "endpoints show partner-a").stdout; !strings.Contains(note, "  "+says+"\n") {
			t.Errorf("the endpoint's note is not %q:\n%s", says, note)
		}
	}
	if got := f.on(t, "events list"); !strings.Contains(got.stdout, "due since 11:59:45 (15s ago)") {
		t.Errorf("the list says\n%s", got.stdout)
	}
	// What cannot be found out is left out.
	delete(f.answers, "GET /api/v1/endpoints/partner-a")
	if got := f.on(t, "events show evt_1"); got.code != 0 || strings.Contains(got.stdout+got.stderr, "held back") {
		t.Errorf("code %d:\n%s%s", got.code, got.stdout, got.stderr)
	}
}
