package ingest_test

import (
	"strings"
	"testing"
	"time"

	"postern/spool"
)

func TestControlHeaders(t *testing.T) {
	d := open(t)
	future := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	near := func(got time.Time, from time.Time, want time.Duration) bool { return got.Sub(from) == want }
	tests := []struct {
		name, headers string
		right         func(e *spool.Event) bool
	}{
		{"none", "", func(e *spool.Event) bool {
			return e.NotBefore.IsZero() && e.TTL == 0 && e.MaxAttempts == 0 && e.Timeout == 0 && !e.ExplicitID
		}},
		{"own ID", "Postern-Event-Id: Az09._:-", func(e *spool.Event) bool { return e.ID == "Az09._:-" && e.ExplicitID }},
		{"longest ID", "Postern-Event-Id: " + strings.Repeat("a", 128), func(e *spool.Event) bool { return len(e.ID) == 128 }},
		{"delay", "Postern-Delay: 1m30s", func(e *spool.Event) bool { return near(e.NotBefore, e.AcceptedAt, 90*time.Second) }},
		{"delay in seconds", "Postern-Delay: 90", func(e *spool.Event) bool { return near(e.NotBefore, e.AcceptedAt, 90*time.Second) }},
		{"delay of nothing", "Postern-Delay: 0", func(e *spool.Event) bool { return e.NotBefore.IsZero() }},
		{"time", "Postern-Not-Before: " + future.Format(time.RFC3339), func(e *spool.Event) bool { return e.NotBefore.Equal(future) }},
		{"time in small letters", "Postern-Not-Before: " + strings.ToLower(future.Format(time.RFC3339)), func(e *spool.Event) bool { return e.NotBefore.Equal(future) }},
		{"time with an offset", "Postern-Not-Before: " + future.In(time.FixedZone("", 7200)).Format(time.RFC3339Nano), func(e *spool.Event) bool { return e.NotBefore.Equal(future) }},
		{"time gone by", "Postern-Not-Before: 2001-01-01T00:00:00Z", func(e *spool.Event) bool { return e.NotBefore.IsZero() }},
		{"TTL", "Postern-Ttl: 1h", func(e *spool.Event) bool { return e.TTL == time.Hour }},
		{"TTL under the delay", "Postern-Ttl: 59\nPostern-Delay: 60", func(e *spool.Event) bool { return e.TTL == 59*time.Second }},
		{"attempts", "Postern-Max-Attempts: 20", func(e *spool.Event) bool { return e.MaxAttempts == 20 }},
		{"timeout", "Postern-Timeout: 60s", func(e *spool.Event) bool { return e.Timeout == time.Minute }},
		{"timeout under a second", "Postern-Timeout: 250ms", func(e *spool.Event) bool { return e.Timeout == 250*time.Millisecond }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := d.accepted(strings.TrimSuffix("GET /https://x.example/ HTTP/1.1\nHost: HOST\n"+tt.headers, "\n"))
			if !tt.right(e) {
				t.Errorf("%+v", e)
			}
			for _, h := range e.Headers {
				if strings.HasPrefix(h.Name, "Postern-") {
					t.Errorf("%s passes on", h.Name)
				}
			}
		})
	}
}

func TestControlHeadersRefused(t *testing.T) {
	d := open(t)
	tests := []struct{ headers, says string }{
		{"Postern-Event-Id:", "Postern-Event-Id: it must be 1 to 128"},
		{"Postern-Event-Id: SECRET/", "Postern-Event-Id: it must be"},
		{"Postern-Event-Id: é", "Postern-Event-Id: it must be"},
		{"Postern-Event-Id: " + strings.Repeat("a", 129), "Postern-Event-Id: it must be"},
		{"Postern-Event-Id: a\nPostern-Event-Id: a", "Postern-Event-Id: it is given more than once"},
		{"Postern-Delay:", "Postern-Delay: it must be a duration"},
		{"Postern-Delay: -1s", "Postern-Delay: it must be a duration"},
		{"Postern-Delay: -5", "Postern-Delay: it must be a duration"},
		{"Postern-Delay: 1.5", "Postern-Delay: it must be a duration"},
		{"Postern-Delay: SECRET", "Postern-Delay: it must be a duration"},
		{"Postern-Delay: 99999999999999999999", "Postern-Delay: it is more than ten years"},
		{"Postern-Delay: 100000h", "Postern-Delay: it is more than ten years"},
		{"Postern-Delay: 1s\nPostern-Not-Before: 2030-01-01T00:00:00Z", "Postern-Delay: it cannot be combined"},
		{"Postern-Not-Before: tomorrow", "Postern-Not-Before: it must be an RFC 3339"},
		{"Postern-Not-Before: 2030-01-01", "Postern-Not-Before: it must be an RFC 3339"},
		{"Postern-Not-Before: 1893456000", "Postern-Not-Before: it must be an RFC 3339"},
		{"Postern-Not-Before: 9999-01-01T00:00:00Z", "Postern-Not-Before: it is more than ten years"},
		{"Postern-Ttl: 0", "Postern-Ttl: it must be more than zero"},
		{"Postern-Ttl: -1s", "Postern-Ttl: it must be a duration"},
		{"Postern-Ttl: 100000h", "Postern-Ttl: it is over the limit"},
		{"Postern-Max-Attempts: 0", "Postern-Max-Attempts: it must be a whole number from 1 to 20"},
		{"Postern-Max-Attempts: 21", "Postern-Max-Attempts: it must be a whole number from 1 to 20"},
		{"Postern-Max-Attempts: +3", "Postern-Max-Attempts: it must be"},
		{"Postern-Max-Attempts: 99999999999999999999", "Postern-Max-Attempts: it must be"},
		{"Postern-Max-Attempts: 3\nPostern-Max-Attempts: 3", "Postern-Max-Attempts: it is given more than once"},
		{"Postern-Timeout: 61s", "Postern-Timeout: it is over the limit of 1m0s"},
		{"Postern-Timeout: 0s", "Postern-Timeout: it must be more than zero"},
		{"Postern-Dealy: 5s", "Postern-Dealy: there is no such control header; did you mean Postern-Delay?"},
		{"Postern-Max-Attempt: 5", "did you mean Postern-Max-Attempts?"},
		{"Postern-Uri: https://SECRET/", "did you mean Postern-Url?"},
		{"Postern-Priority: high", "those there are: Postern-Url, Postern-Event-Id"},
		{"Postern-" + strings.Repeat("x", 5000) + ": 1", "those there are"},
	}
	for _, tt := range tests {
		t.Run(tt.headers[:min(len(tt.headers), 60)], func(t *testing.T) {
			d.refused(t, "GET /https://x.example/ HTTP/1.1\nHost: HOST\n"+tt.headers, 400, "bad_header", tt.says)
		})
	}
}

// A named endpoint has bounds of its own.
func TestOverridesOfANamedEndpoint(t *testing.T) {
	d := open(t)
	d.refused(t, "GET /to/partner-a HTTP/1.1\nHost: HOST\nPostern-Max-Attempts: 11", 400, "bad_header", "from 1 to 10")
	d.refused(t, "GET /to/partner-a HTTP/1.1\nHost: HOST\nPostern-Timeout: 31s", 400, "bad_header", "limit of 30s")
	d.refused(t, "GET /to/a%20b HTTP/1.1\nHost: HOST\nPostern-Max-Attempts: 101", 400, "bad_header", "from 1 to 100")
	e := d.accepted("GET /to/partner-a HTTP/1.1\nHost: HOST\nPostern-Max-Attempts: 10\nPostern-Timeout: 30")
	if e.MaxAttempts != 10 || e.Timeout != 30*time.Second {
		t.Errorf("%+v", e)
	}
}
