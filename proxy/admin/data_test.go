package admin_test

import (
	"time"

	"postern/proxy/admin"
	"postern/spool"
)

// Secrets that only ?reveal=1 may show. Every event has some of each kind.
const (
	secretQuery  = "SEC-QUERY"
	secretUser   = "SEC-USER"
	secretHeader = "SEC-HEADER"
	secretBody   = "SEC-BODY"
	secretPath   = "SEC-PATH"
)

// someSpool has one event in every state; the clock of these tests stands at midnight of 2000-01-01.
func someSpool() *fakeSpool {
	headers := []spool.Header{{Name: "Content-Type", Value: "text/plain"}, {Name: "X-Api-Key", Value: secretHeader}}
	adHoc := "https://" + secretUser + ":pw@other.example:8443/" + secretPath + "?cid=" + secretQuery
	event := func(id, endpoint string, named bool, target string) spool.Event {
		return spool.Event{
			ID: id, Endpoint: endpoint, Named: named, Target: target, Method: "POST", Headers: headers,
			Body: []byte(secretBody), AcceptedAt: at(20, 0),
		}
	}
	failed := func(n int, start time.Time, status int, class string) spool.Attempt {
		return spool.Attempt{Number: n, StartedAt: start, Duration: 1234567 * time.Nanosecond, StatusCode: status, Error: class}
	}
	answer := &spool.Answer{StatusCode: 302, Location: "https://elsewhere.example/?" + secretQuery, Body: []byte("\xff\xfe" + secretBody)}
	return &fakeSpool{
		stats: spool.Stats{
			Pending: 1, Failed: 2, Leased: 3, DeadLetter: 4, FileBytes: 65536, MaxBytes: 16777216, OldestPending: at(20, 0),
			LastHour: spool.HourStats{Delivered: 4, Failed: 6, Duration: 90 * time.Millisecond},
		},
		views: []spool.View{
			{
				Event: event("evt_delivered", "https://other.example:8443", false, ""), State: spool.StateDelivered,
				Progress:    spool.Progress{Attempts: 1, Charged: 1, History: []spool.Attempt{failed(1, at(20, 1), 204, "")}},
				DeliveredAt: at(20, 1), Size: 8,
			},
			{
				Event: event("evt_dead", "partner-a", true, "/"+secretPath+"?cid="+secretQuery), State: spool.StateDeadLetter,
				Progress: spool.Progress{
					Attempts: 7, Charged: 5, DeadReason: spool.ReasonExhausted, DeadAt: at(22, 0), Answer: answer,
					History: []spool.Attempt{failed(1, at(20, 1), 0, "timeout"), failed(7, at(22, 0), 503, "http_503")},
				}, Size: 8,
			},
			{
				Event: event("evt_expired", "gone-from-config", true, "?"+secretQuery), State: spool.StateDeadLetter,
				Progress: spool.Progress{DeadReason: spool.ReasonExpired, DeadAt: at(23, 0)}, Size: 8,
			},
			{
				Event: event("evt_failed", "https://other.example:8443", false, adHoc), State: spool.StateFailed,
				Progress: spool.Progress{
					Attempts: 1, Charged: 1, NextAttempt: time.Date(2000, 1, 1, 1, 0, 0, 500_000_000, time.FixedZone("", 3600)),
					History: []spool.Attempt{failed(1, at(20, 2), 302, "redirect")}, Answer: answer,
				}, Size: 8,
			},
			{
				Event: event("evt_busy", "partner-a", true, ""), State: spool.StateInFlight,
				Progress: spool.Progress{NextAttempt: at(20, 0)}, Size: 8,
			},
			{
				Event: event("evt:p.1-_", "partner-a", false, adHoc), State: spool.StatePending,
				Progress: spool.Progress{NextAttempt: at(20, 0)}, Size: 8,
			},
		},
	}
}

func someEndpoints() *fakeEndpoints {
	return &fakeEndpoints{views: []admin.EndpointView{
		{
			Name: "partner-a", Configured: true, URL: "https://partner.example/postback",
			Breaker: admin.BreakerView{State: "open", ConsecutiveFailures: 12, FailureThreshold: 10, OpenedAt: at(23, 30), Cooldown: 1500 * time.Millisecond},
			Paused:  true, PauseReason: "410", PausedAt: at(23, 31),
			Limiter: admin.LimiterView{
				Limits:         []admin.LimitView{{Limit: 100, Window: time.Minute, Used: 7}},
				ThrottledUntil: at(23, 59), NextAllowed: at(23, 59), HeldBy: "paused", Concurrency: 1, MaxConcurrency: 32,
			},
			Queue: admin.QueueView{Pending: 1, AwaitingRetry: 2, InFlight: 3, DeadLetter: 4},
			P50:   12345 * time.Microsecond, P95: 2 * time.Second, P99: 3 * time.Second, Samples: 20,
		},
		{
			Name: "https://other.example:8443", URL: "https://other.example:8443",
			Breaker: admin.BreakerView{State: "closed", FailureThreshold: 10, Cooldown: 5 * time.Minute},
			Limiter: admin.LimiterView{Concurrency: 32, MaxConcurrency: 32},
		},
	}}
}
