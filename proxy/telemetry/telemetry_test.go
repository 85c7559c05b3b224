package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCountersAndHistograms(t *testing.T) {
	m := New(Config{Version: "1.2.3", RejectReasons: []string{"too_large"}})
	m.Configured("partner-a", "idle")
	m.Accepted("partner-a")
	m.Accepted("partner-a")
	m.Rejected("no_target")
	m.Attempt("partner-a", OutcomeTransient, 20*time.Millisecond)
	m.Attempt("partner-a", OutcomePermanent, 300*time.Millisecond)
	m.Attempt("partner-a", OutcomeDelivered, 90*time.Second)
	m.Delivered("partner-a", 2*time.Minute)
	m.Delivered("partner-a", -time.Minute) // the clock was set back
	for _, reason := range []string{ReasonExhausted, ReasonExpired, ReasonPermanent, ReasonGone} {
		m.DeadLetter("partner-a", reason)
	}
	m.Commit(700 * time.Microsecond)
	m.SyncRows(7)
	m.SyncRows(-1)

	p := scrape(t, m)
	p.want(t, counter, "postern_accepted_total|endpoint=partner-a", 2)
	p.want(t, counter, "postern_accepted_total|endpoint=idle", 0)
	p.want(t, counter, "postern_rejected_total|reason=no_target", 1)
	p.want(t, counter, "postern_rejected_total|reason=too_large", 0)
	for _, outcome := range []string{"delivered", "transient", "permanent"} {
		p.want(t, counter, "postern_attempts_total|endpoint=partner-a|outcome="+outcome, 1)
	}
	for _, reason := range []string{"exhausted", "expired", "permanent", "gone"} {
		p.want(t, counter, "postern_dead_letters_total|endpoint=partner-a|reason="+reason, 1)
		p.want(t, counter, "postern_dead_letters_total|endpoint=idle|reason="+reason, 0)
	}
	p.want(t, counter, "postern_sync_rows_total", 7)
	p.want(t, gauge, "postern_build_info|version=1.2.3", 1)

	p.want(t, histogram, "postern_attempt_duration_seconds_count|endpoint=partner-a", 3)
	p.want(t, histogram, "postern_attempt_duration_seconds_sum|endpoint=partner-a", 90.32)
	p.want(t, histogram, "postern_attempt_duration_seconds_bucket|endpoint=partner-a|le=0.01", 0)
	p.want(t, histogram, "postern_attempt_duration_seconds_bucket|endpoint=partner-a|le=0.025", 1)
	p.want(t, histogram, "postern_attempt_duration_seconds_bucket|endpoint=partner-a|le=60", 2)
	p.want(t, histogram, "postern_attempt_duration_seconds_bucket|endpoint=partner-a|le=+Inf", 3)
	p.want(t, histogram, "postern_delivery_age_seconds_count|endpoint=partner-a", 2)
	p.want(t, histogram, "postern_delivery_age_seconds_sum|endpoint=partner-a", 120)
	p.want(t, histogram, "postern_spool_commit_seconds_bucket|le=0.001", 1)
	if p.count("go_goroutines") != 1 || p.count("process_open_fds") != 1 {
		t.Error("the metrics of the runtime and the process are missing")
	}
}

func TestAnyEndpointNameGivesAValidPage(t *testing.T) {
	for _, tc := range []struct{ name, label string }{
		{`quo"te`, `quo"te`},
		{`back\slash`, `back\slash`},
		{`trailing\`, `trailing\`},
		{`\"`, `\"`},
		{"line\nbreak", "line\nbreak"},
		{"a\r\tb\x00c\x7f", "a\r\tb\x00c\x7f"},
		{"müller-日本", "müller-日本"},
		{"bad\xff\xfebytes", "bad\uFFFDbytes"},
		{`",le="1"} 5`, `",le="1"} 5`},
		{"{a=\"b\"}", "{a=\"b\"}"},
		{"", ""},
		{"https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := New(Config{Version: tc.name, Source: SourceFunc(func() Gauges {
				return Gauges{Endpoints: []EndpointGauges{{Endpoint: tc.name, Breaker: BreakerOpen}}}
			})})
			m.Accepted(tc.name)
			m.Rejected(tc.name)
			m.Attempt(tc.name, tc.name, time.Second)
			m.DeadLetter(tc.name, tc.name)
			p := scrape(t, m)
			p.want(t, counter, "postern_accepted_total|endpoint="+tc.label, 1)
			p.want(t, counter, "postern_rejected_total|reason="+tc.label, 1)
			p.want(t, counter, "postern_attempts_total|endpoint="+tc.label+"|outcome=other", 1)
			p.want(t, counter, "postern_dead_letters_total|endpoint="+tc.label+"|reason=other", 1)
			p.want(t, gauge, "postern_breaker_state|endpoint="+tc.label, 2)
			p.want(t, gauge, "postern_build_info|version="+tc.label, 1)
			p.want(t, histogram, "postern_attempt_duration_seconds_bucket|endpoint="+tc.label+"|le=1", 1)
		})
	}
}

// TestNamesOfOneLabel: names that differ only in what cannot be shown are counted together; the page must not name a
// series twice.
func TestNamesOfOneLabel(t *testing.T) {
	m := New(Config{})
	for _, name := range []string{"a\xff", "a\xfe", "a\uFFFD", "b"} {
		m.Accepted(name)
		m.Attempt(name, OutcomeDelivered, time.Second)
	}
	p := scrape(t, m)
	p.want(t, counter, "postern_accepted_total|endpoint=a\uFFFD", 3)
	p.want(t, histogram, "postern_attempt_duration_seconds_count|endpoint=a\uFFFD", 3)
	p.want(t, counter, "postern_accepted_total|endpoint=b", 1)
}

func FuzzLabels(f *testing.F) {
	f.Add(`a"b\c`, "x\ny")
	f.Add("\xc3\x28", `\`)
	f.Fuzz(func(t *testing.T, endpoint, reason string) {
		var out bytes.Buffer
		family := newFamily("postern_dead_letters_total", counter, "Help.")
		family.counter(labels("endpoint", endpoint, "reason", reason)).Inc()
		family.write(&out)
		p, err := parsePage(out.Bytes())
		if err != nil {
			t.Fatalf("labels %q, %q: %v", endpoint, reason, err)
		}
		clean := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
		p.want(t, counter, "postern_dead_letters_total|endpoint="+clean(endpoint)+"|reason="+clean(reason), 1)
		m := New(Config{})
		m.Accepted(endpoint)
		m.Accepted(reason)
		if n := scrape(t, m).values["postern_accepted_total|endpoint="+clean(endpoint)]; n != 1 && clean(endpoint) != clean(reason) {
			t.Fatalf("%q is counted %v times", endpoint, n)
		}
	})
}

func TestAdHocEndpointsShareALabelBeyondTheFirstHundred(t *testing.T) {
	const hosts = 5000
	var states []EndpointGauges
	m := New(Config{Source: SourceFunc(func() Gauges { return Gauges{Endpoints: states} })})
	for i := range hosts {
		m.Accepted(fmt.Sprintf("https://h%d.example", i))
		states = append(states, EndpointGauges{Endpoint: fmt.Sprintf("https://h%d.example", i)})
	}
	m.Accepted("https://h3.example")
	m.Accepted("late-but-configured")
	states[4000].Breaker = BreakerHalfOpen
	states[4001].Paused = true
	states[4002].Waiting, states[4003].Waiting = 3, 4

	p := scrape(t, m)
	if got := p.count("postern_accepted_total"); got != 102 {
		t.Errorf("%d series of postern_accepted_total, want 100 + ad_hoc + the configured one", got)
	}
	p.want(t, counter, "postern_accepted_total|endpoint=https://h3.example", 2)
	p.want(t, counter, "postern_accepted_total|endpoint=ad_hoc", hosts-100)
	p.want(t, counter, "postern_accepted_total|endpoint=late-but-configured", 1)
	p.want(t, gauge, "postern_breaker_state|endpoint=ad_hoc", 1)
	p.want(t, gauge, "postern_endpoint_paused|endpoint=ad_hoc", 1)
	p.want(t, gauge, "postern_endpoint_waiting|endpoint=ad_hoc", 7)
	p.want(t, gauge, "postern_breaker_state|endpoint=https://h3.example", 0)
	if got := len(m.endpoints); got != 102 {
		t.Errorf("%d endpoints are remembered: hosts beyond the hundredth must take no memory", got)
	}
}

func TestRejectReasonsAreBounded(t *testing.T) {
	m := New(Config{})
	for i := range 1000 {
		m.Rejected(fmt.Sprint("reason-", i))
	}
	p := scrape(t, m)
	if got := p.count("postern_rejected_total"); got != maxReasons+1 {
		t.Errorf("%d reasons on the page", got)
	}
	p.want(t, counter, "postern_rejected_total|reason=other", 1000-maxReasons)
}

func TestGauges(t *testing.T) {
	m := New(Config{Source: SourceFunc(func() Gauges {
		return Gauges{
			Pending: 1, InFlight: 2, Failed: 3, Delivered: 4, DeadLetter: 5,
			OldestPending: 90 * time.Second, SpoolBytes: 3 << 40, SalvageLost: 6, HistoryDropped: 7, SetAside: 8,
			Endpoints: []EndpointGauges{
				{Endpoint: "a", Breaker: ParseBreakerState("closed")},
				{Endpoint: "b", Breaker: ParseBreakerState("half_open")},
				{Endpoint: "c", Breaker: ParseBreakerState("open"), Paused: true, Waiting: 12},
			},
			Writable: true, Concurrency: 256, ReloadRefused: true, FreeBytes: 10, MaxBytes: 1 << 30,
			SyncLag: 1500 * time.Millisecond, SyncRejected: 9,
		}
	})})
	p := scrape(t, m)
	for i, state := range []string{"pending", "in_flight", "failed", "delivered", "dead_letter"} {
		p.want(t, gauge, "postern_events|state="+state, float64(i+1))
	}
	for i, name := range []string{"a", "b", "c"} {
		p.want(t, gauge, "postern_breaker_state|endpoint="+name, float64(i))
	}
	p.want(t, gauge, "postern_endpoint_paused|endpoint=a", 0)
	p.want(t, gauge, "postern_endpoint_paused|endpoint=c", 1)
	p.want(t, gauge, "postern_oldest_pending_seconds", 90)
	p.want(t, gauge, "postern_spool_bytes", 3<<40)
	p.want(t, gauge, "postern_endpoint_waiting|endpoint=a", 0)
	p.want(t, gauge, "postern_endpoint_waiting|endpoint=c", 12)
	for name, want := range map[string]float64{
		"postern_ready": 0, "postern_spool_writable": 1, "postern_spool_full": 0, "postern_concurrency_limit": 256,
		"postern_config_last_reload_successful": 0, "postern_spool_free_bytes": 10, "postern_spool_max_bytes": 1 << 30,
	} {
		p.want(t, gauge, name, want)
	}
	if off := math.Abs(p.values["postern_time_seconds"] - float64(time.Now().Unix())); off > 60 {
		t.Errorf("postern_time_seconds is %v s off", off)
	}
	p.want(t, gauge, "postern_sync_lag_seconds", 1.5)
	p.want(t, counter, "postern_spool_salvage_lost_total", 6)
	p.want(t, counter, "postern_spool_history_dropped_total", 7)
	p.want(t, counter, "postern_spool_set_aside_total", 8)
	p.want(t, counter, "postern_sync_rejected_rows_total", 9)
}

func TestTwoRegistriesDoNotMeet(t *testing.T) {
	a, b := New(Config{}), New(Config{})
	a.Accepted("x")
	if n := scrape(t, b).count("postern_accepted_total"); n != 0 {
		t.Error("an event that one Metrics counted shows in the other")
	}
}

// TestCountingAndScrapingAtOnce is for the race detector, and checks that no count is lost.
func TestCountingAndScrapingAtOnce(t *testing.T) {
	m := New(Config{})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 500 {
				name := fmt.Sprintf("https://h%d.example", (i*7+worker)%300)
				m.Accepted(name)
				m.Attempt(name, OutcomeDelivered, time.Millisecond)
				m.Rejected(fmt.Sprint(i % 60))
			}
		})
	}
	for range 5 {
		scrape(t, m)
	}
	wg.Wait()
	var total float64
	for key, value := range scrape(t, m).values {
		if strings.HasPrefix(key, "postern_accepted_total|") {
			total += value
		}
	}
	if total != 2000 {
		t.Errorf("%v events counted, want 2000", total)
	}
}

func TestCountingDoesNotAllocate(t *testing.T) {
	m := New(Config{})
	for i := range maxAdHoc + 1 {
		m.Accepted(fmt.Sprintf("https://h%d.example", i))
	}
	m.Configured("partner-a")
	m.Rejected("full")
	for _, endpoint := range []string{"partner-a", "https://h5.example", "https://unseen.example"} {
		allocs := testing.AllocsPerRun(100, func() {
			m.Accepted(endpoint)
			m.Attempt(endpoint, OutcomeDelivered, time.Millisecond)
			m.Delivered(endpoint, time.Second)
			m.DeadLetter(endpoint, ReasonGone)
			m.Rejected("full")
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", endpoint, allocs)
		}
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrorIsReported(t *testing.T) {
	if err := New(Config{}).WritePrometheus(failingWriter{}); err != io.ErrClosedPipe {
		t.Errorf("error = %v", err)
	}
}

func BenchmarkAttempt(b *testing.B) {
	m := New(Config{})
	m.Configured("partner-a")
	for b.Loop() {
		m.Attempt("partner-a", OutcomeDelivered, 30*time.Millisecond)
	}
}
