package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrape reads /metrics as Prometheus does, and returns its size too.
func scrape(t *testing.T, p *postern) (map[string]int, int) {
	t.Helper()
	page := p.get("/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatalf("/metrics does not parse: %v", err)
	}
	series := map[string]int{}
	for name, f := range families {
		series[name] = len(f.GetMetric())
	}
	return series, len(page)
}

// The contract's metrics, by name and kind of label.
func TestMetricsOfTheContract(t *testing.T) {
	t.Parallel()
	ok, failing := newReceiver(t, nil), newReceiver(t, script(status(500)))
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { retry: { max_attempts: 2, base_delay: 1ms, max_delay: 1ms } }\n"+
		"endpoints:\n  - { name: ok, url: \""+ok.url("/")+"\" }\n  - { name: failing, url: \""+failing.url("/")+"\" }\n")
	p.accept("POST", "/to/ok", "x")
	p.accept("POST", "/to/failing", "x")
	p.send("POST", "/nothing", "")
	p.settled(patience)
	for _, c := range []struct {
		name  string
		parts []string
		want  float64
	}{
		{"postern_accepted_total", []string{`endpoint="ok"`}, 1},
		{"postern_accepted_total", []string{`endpoint="failing"`}, 1},
		{"postern_rejected_total", nil, 1},
		{"postern_attempts_total", []string{`endpoint="ok"`, `outcome="delivered"`}, 1},
		{"postern_attempts_total", []string{`endpoint="failing"`, `outcome="transient"`}, 2},
		{"postern_attempts_total", []string{`outcome="permanent"`}, 0},
		{"postern_attempt_duration_seconds_count", []string{`endpoint="failing"`}, 2},
		{"postern_attempt_duration_seconds_bucket", []string{`endpoint="failing"`, `le="+Inf"`}, 2},
		{"postern_delivery_age_seconds_count", []string{`endpoint="ok"`}, 1},
		{"postern_delivery_age_seconds_bucket", []string{`endpoint="ok"`, `le="+Inf"`}, 1},
		{"postern_events", []string{`state="dead_letter"`}, 1},
		{"postern_events", []string{`state="pending"`}, 0},
		{"postern_oldest_pending_seconds", nil, 0},
		{"postern_breaker_state", []string{`endpoint="ok"`}, 0},
		{"postern_dead_letters_total", []string{`endpoint="failing"`, `reason="exhausted"`}, 1},
	} {
		p.metricIs(c.want, c.name, c.parts...)
	}
	series, _ := scrape(t, p)
	for _, name := range []string{
		"postern_accepted_total", "postern_rejected_total", "postern_attempts_total", "postern_attempt_duration_seconds", "postern_delivery_age_seconds",
		"postern_events", "postern_oldest_pending_seconds", "postern_breaker_state", "postern_dead_letters_total", "postern_spool_bytes",
		"postern_spool_commit_seconds", "postern_sync_lag_seconds", "postern_sync_rows_total", "postern_sync_rejected_rows_total",
		"postern_spool_salvage_lost_total",
	} {
		if series[name] == 0 {
			t.Errorf("%s is not there", name)
		}
	}
	if p.metric("postern_spool_bytes") <= 0 || p.metric("postern_spool_commit_seconds_count") <= 0 {
		t.Error("the spool's size or its commits are not counted")
	}
}

// Unique paths, queries and hosts must not blow up the metrics, nor stay in memory: the page stays small, ad hoc endpoints
// beyond the first 100 share one label value, and what thousands of hosts took is given back when they have been idle for
// a minute. A proxy stands for the hosts.
func TestLabelsStayFew(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm+"outbound_proxy: "+r.url("")+"\n")
	const heap = "go_memstats_heap_inuse_bytes"
	before := p.metric(heap)
	const hosts, perHost = 5000, 4
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < hosts*perHost; i += 16 {
				host := fmt.Sprintf("127.1.%d.%d", i%hosts/250, 1+i%hosts%250)
				if a, err := p.try("GET", fmt.Sprintf("/http://%s/CLICKPATH%d?cid=CLICKID%d", host, i, i), ""); err != nil || a.Status != 202 {
					t.Errorf("%v, status %d: %s", err, a.Status, a.Body)
					return
				}
			}
		})
	}
	wg.Wait()
	p.settled(2 * patience)
	most := p.metric(heap)
	p.metricIs(hosts*perHost, "postern_attempts_total", `outcome="delivered"`)
	series, size := scrape(t, p)
	for name, n := range series {
		if strings.HasPrefix(name, "postern_") && n > 5*101 { // 101 label values for endpoints, with up to four outcomes or reasons
			t.Errorf("%s has %d series", name, n)
		}
	}
	if size > 500<<10 {
		t.Errorf("/metrics has %d bytes", size)
	}
	page := p.get("/metrics")
	if strings.Contains(page, "CLICK") {
		t.Error("/metrics shows a click ID or a path")
	}
	if !strings.Contains(page, `postern_accepted_total{endpoint="ad_hoc"}`) {
		t.Error("/metrics has no ad_hoc")
	}
	p.metricIs(hosts*perHost, "postern_accepted_total")
	tick := time.NewTicker(2 * time.Second) // a page of metrics takes memory, too
	defer tick.Stop()
	for deadline := time.Now().Add(patience); p.metric(heap) > most/3; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%.1f MiB of heap are in use, %.1f with the hosts and %.1f before them", p.metric(heap)/(1<<20), most/(1<<20), before/(1<<20))
		}
	}
	t.Logf("heap in use: %.1f MiB before, %.1f with the hosts, %.1f afterwards", before/(1<<20), most/(1<<20), p.metric(heap)/(1<<20))
}

// Origins that look odd are valid label values all the same.
func TestOddOriginsInLabels(t *testing.T) {
	t.Parallel()
	p := startPostern(t, "targets: { allow_private: true }\ndefaults: { timeout: 200ms, retry: { max_attempts: 1 } }\n")
	odd := []string{"http://[::1]:1", "http://UPPER.invalid", "http://xn--bcher-kva.invalid", "http://a_b.invalid", "http://a..b.invalid", "http://é.invalid", `http://a"b.invalid`, `http://a\b.invalid`, "http://a{b}.invalid"}
	accepted := 0
	for _, origin := range odd {
		if a := p.send("POST", "/", "x", "Postern-Url: "+origin+"/"); a.Status == 202 {
			accepted++
		} else {
			checkProblem(t, a, 400, "")
		}
	}
	p.settled(patience)
	scrape(t, p)
	p.metricIs(float64(accepted), "postern_accepted_total")
	if accepted < 4 {
		t.Errorf("only %d were accepted", accepted)
	}
}
