package admin_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"postern/proxy/admin"
	"postern/proxy/guard"
	"postern/proxy/server"
	"postern/spool"
)

// pipe serves a handler on connections in memory, so that time can be that of a synctest bubble.
type pipe struct {
	conns chan net.Conn
	once  *sync.Once
}

func (p pipe) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (pipe) Addr() net.Addr { return &net.TCPAddr{} }
func (p pipe) Close() error { p.once.Do(func() { close(p.conns) }); return nil }

// piped starts a server for the handler, and returns how to connect to it.
func piped(t *testing.T, r *rig) (dial func() net.Conn) {
	t.Helper()
	in := pipe{make(chan net.Conn), new(sync.Once)}
	s := server.New(server.Config{Name: "admin", Handler: r.handler, Logger: r.parts.Logger, Limits: server.Admin})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(in) }()
	t.Cleanup(func() {
		s.Close()
		<-ended
	})
	return func() net.Conn {
		here, there := net.Pipe()
		in.conns <- there
		t.Cleanup(func() { here.Close() })
		return here
	}
}

// watch asks for the stream.
func watch(t *testing.T, dial func() net.Conn, headers ...string) (*bufio.Reader, net.Conn, *http.Response) {
	t.Helper()
	c := dial()
	head := "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
	if _, err := io.WriteString(c, head); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(resp.Body), c, resp
}

// event reads the next event, or the comment that stands for none, within the time that the server has.
func event(t *testing.T, r *bufio.Reader) (name string, data []byte) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended: %v", err)
		}
		switch field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); {
		case line == "\n":
			return name, data
		case field == "event":
			name = value
		case field == "data":
			data = []byte(value)
		}
	}
}

// TestStream: every object at once, then what has changed, and a sign of life where nothing has.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.parts.Minutes = nil
		body, _, resp := watch(t, piped(t, r))
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%d %v", resp.StatusCode, resp.Header)
		}
		event(t, body) // the greeting
		for _, want := range []string{"status", "endpoints", "activity", "replays"} {
			name, data := event(t, body)
			path := map[string]string{"replays": "dead-letters/replays"}[want]
			if path == "" {
				path = want
			}
			if asked := r.do("GET", "/api/v1/"+path, ""); name != want || string(data) != strings.TrimSpace(asked.Body.String()) {
				t.Errorf("%s: %s\nasked for: %s", name, data, asked.Body)
			}
		}
		start := time.Now()
		if name, _ := event(t, body); name != "" || time.Since(start) != 15*time.Second {
			t.Errorf("after %v: %q", time.Since(start), name)
		}
		r.spool.mu.Lock()
		r.spool.stats.Pending = 77
		r.spool.mu.Unlock()
		var st struct{ Pending int }
		if name, data := event(t, body); name != "status" || json.Unmarshal(data, &st) != nil || st.Pending != 77 {
			t.Errorf("%s %s", name, data)
		}
	})
}

// TestStreamsShareOneLook, and nobody looks while nobody watches.
func TestStreamsShareOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		looks := 0
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return looks
		}
		r := newRig(t, func(p *admin.Parts) {
			p.Sync = func() any {
				mu.Lock()
				defer mu.Unlock()
				looks++
				return looks // every look has news
			}
		})
		dial := piped(t, r)
		time.Sleep(time.Minute)
		if n := count(); n != 0 {
			t.Errorf("%d looks for nobody", n)
		}
		var conns []net.Conn
		for range 5 {
			body, c, _ := watch(t, dial)
			conns = append(conns, c)
			go io.Copy(io.Discard, body)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		if n := count(); n < 10 || n > 12 {
			t.Errorf("%d looks in ten seconds for five", n)
		}
		for _, c := range conns {
			c.Close()
		}
		time.Sleep(2 * time.Second)
		before := count()
		time.Sleep(time.Minute)
		if n := count(); n != before {
			t.Errorf("%d looks after all have left", n-before)
		}
	})
}

// TestSlowWatchersAreDropped: they hold up nobody, and do not stay.
func TestSlowWatchersAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r := newRig(t, func(p *admin.Parts) { p.Sync = func() any { n++; return n } })
		dial := piped(t, r)
		_, stuck, _ := watch(t, dial) // and reads no further
		quick, _, _ := watch(t, dial)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range 40 {
				event(t, quick)
			}
		}()
		time.Sleep(45 * time.Second)
		select {
		case <-ended:
		default:
			t.Error("the quick one waits for the stuck one")
		}
		stuck.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.Copy(io.Discard, stuck); err != nil {
			t.Errorf("the stuck one was not let go: %v", err)
		}
	})
}

func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		dial := piped(t, r)
		for range 32 {
			body, _, resp := watch(t, dial)
			if resp.StatusCode != 200 {
				t.Fatal(resp.StatusCode)
			}
			go io.Copy(io.Discard, body)
		}
		if _, _, resp := watch(t, dial); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("one too many: %d %v", resp.StatusCode, resp.Header)
		}
		// Stopping ends them at once, and takes no more.
		start := time.Now()
		r.handler.Close()
		body, _, resp := watch(t, dial)
		io.Copy(io.Discard, body)
		if resp.StatusCode != 503 || time.Since(start) > time.Second {
			t.Errorf("while stopping: %d after %v", resp.StatusCode, time.Since(start))
		}
	})
}

func TestStreamIsGuarded(t *testing.T) {
	r := newRig(t, func(p *admin.Parts) {
		p.Guard = guard.New(guard.Config{Tokens: func() [][]byte { return [][]byte{[]byte("tok")} }})
	})
	r.refused(r.do("GET", "/api/v1/stream", ""), 401)
	r.refused(r.do("GET", "/api/v1/stream", "", "Authorization: Bearer tok", "Origin: https://evil.example"), 403)
	r.refused(r.do("POST", "/api/v1/stream", "", "Authorization: Bearer tok"), 405)
	r.refused(r.do("GET", "/api/v1/stream?x=1", "", "Authorization: Bearer tok"), 400)
	if w := r.do("HEAD", "/api/v1/stream", "", "Authorization: Bearer tok"); w.Code != 200 || w.Body.Len() > 0 {
		t.Errorf("HEAD: %d %s", w.Code, w.Body)
	}
}

// slots are half hours up to now, so many samples in each.
func slots(p95 ...time.Duration) (list []admin.LatencySlot) {
	start := time.Now().Truncate(30 * time.Minute)
	for i, d := range p95 {
		list = append(list, admin.LatencySlot{Start: start.Add(time.Duration(i-len(p95)+1) * 30 * time.Minute), P50: d / 2, P95: d, Count: 25})
	}
	return list
}

// latency is an endpoint of GET latency.
type latency struct {
	Name  string
	Trend struct {
		State   string
		Recent  *float64 `json:"recent_p95_ms"`
		Earlier *float64 `json:"earlier_p95_ms"`
	}
	Buckets []struct {
		Start time.Time
		P50   float64 `json:"p50_ms"`
		P95   float64 `json:"p95_ms"`
		N     int     `json:"sample_count"`
	}
}

func TestLatency(t *testing.T) {
	const ms = time.Millisecond
	calls := 0
	r := newRig(t, func(p *admin.Parts) {
		p.Latency = func(endpoint string) map[string][]admin.LatencySlot {
			calls++
			return map[string][]admin.LatencySlot{"partner-a": slots(100*ms, 100*ms, 100*ms, 100*ms, 300*ms, 300*ms), "https://other.example:8443": slots(5 * ms), "quiet": nil}
		}
	})
	var all struct {
		Hours     int
		Step      float64 `json:"bucket_seconds"`
		Endpoints []latency
	}
	for range 3 {
		if w := r.do("GET", "/api/v1/latency?hours=1", ""); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &all) != nil {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if calls != 1 {
		t.Errorf("asked %d times within a second", calls)
	}
	if len(all.Endpoints) != 2 || all.Hours != 1 || all.Step != 1800 || all.Endpoints[0].Name != "partner-a" || all.Endpoints[0].Trend.State != "slowing" || all.Endpoints[1].Trend.State != "unknown" {
		t.Errorf("all: %+v", all)
	}
	if n := len(all.Endpoints[0].Buckets); n != 3 {
		t.Errorf("%d half hours within the last hour", n)
	}
	var one latency
	if w := r.do("GET", "/api/v1/endpoints/partner-a/latency", ""); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &one) != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if len(one.Buckets) != 6 || one.Buckets[5].P95 != 300 || one.Buckets[5].P50 != 150 || one.Buckets[5].N != 25 || *one.Trend.Recent != 300 || *one.Trend.Earlier != 100 {
		t.Errorf("one: %+v", one)
	}
	r.refused(r.do("GET", "/api/v1/endpoints/nobody/latency", ""), 404)
	r.refused(r.do("GET", "/api/v1/endpoints/partner-a/latency?hours=25", ""), 400, "24")
	r.refused(r.do("POST", "/api/v1/endpoints/partner-a/latency", ""), 405)
	r.refused(r.do("GET", "/api/v1/latency?days=1", ""), 400, "hours")
}

// minutes are two whole ones and a half.
type minutes struct{ now time.Time }

func (m minutes) Minutes() []spool.MinuteStats {
	start := m.now.Add(-30 * time.Second)
	return []spool.MinuteStats{
		{Start: start.Add(-2 * time.Minute), HourStats: spool.HourStats{Delivered: 1000}},
		{Start: start.Add(-time.Minute), HourStats: spool.HourStats{Delivered: 40, Failed: 4}},
		{Start: start, HourStats: spool.HourStats{Delivered: 10}},
	}
}

func TestActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(p *admin.Parts) { p.Minutes = minutes{time.Now()} })
		r.want(r.do("GET", "/api/v1/activity", ""), 200, `{"delivered_per_minute":30,"failed_per_minute":2,"minutes":[`+
			`{"start":"1999-12-31T23:57:30Z","delivered":1000,"failed":0},{"start":"1999-12-31T23:58:30Z","delivered":40,"failed":4},{"start":"1999-12-31T23:59:30Z","delivered":10,"failed":0}]}`)
	})
	r := newRig(t)
	r.want(r.do("GET", "/api/v1/activity", ""), 200, `{"delivered_per_minute":0,"failed_per_minute":0,"minutes":[]}`)
}

// TestChosenByID: those alone, each once, and only dead letters.
func TestChosenByID(t *testing.T) {
	r := newRig(t)
	const ids = `"ids":["evt_dead","evt_dead","evt_failed","nobody"]`
	w := r.do("POST", "/api/v1/dead-letters/replay", `{`+ids+`,"dry_run":true}`)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"matched":1,"replayed":0,"dry_run":true`) || len(r.spool.made()) > 0 {
		t.Errorf("dry run: %d %s", w.Code, w.Body)
	}
	r.want(r.do("POST", "/api/v1/dead-letters/replay", `{`+ids+`}`), 200, `{"matched":1,"replayed":1,"dry_run":false}`)
	r.want(r.do("POST", "/api/v1/dead-letters/purge", `{"ids":["evt_expired"]}`), 200, `{"matched":1,"purged":1,"dry_run":false}`)
	for body, says := range map[string]string{
		`{"ids":[]}`: "from 1 to 1000", `{"ids":null}`: "empty", `{"ids":"evt_dead"}`: "JSON type", `{"ids":["evt_dead"],"endpoint":"partner-a"}`: "other filters",
		`{"ids":[` + strings.Repeat(`"x",`, 1000) + `"x"]}`: "from 1 to 1000",
	} {
		r.refused(r.do("POST", "/api/v1/dead-letters/purge", body), 400, says)
	}
}
