package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// noon is when these tests run.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// typed is what a person typed, where and with what environment.
type typed struct {
	args  []string
	stdin string
	env   map[string]string
}

// result is what came back.
type result struct {
	stdout, stderr string
	code           int
}

func (p typed) run(t *testing.T) result {
	t.Helper()
	var out, err bytes.Buffer
	code := Main(Process{
		Args: p.args, Stdin: strings.NewReader(p.stdin), Stdout: &out, Stderr: &err, now: func() time.Time { return noon },
		Env: func(name string) (string, bool) { value, ok := p.env[name]; return value, ok },
	})
	return result{out.String(), err.String(), code}
}

// fake is an admin API with fixed answers by method and path, and a record of what it was asked.
type fake struct {
	*httptest.Server
	answers map[string]string
	status  int    // where not zero, of every answer
	refusal string // its body
	asked   []string
	token   string // the last Authorization
}

func newFake(t *testing.T, answers map[string]string) *fake {
	t.Helper()
	f := &fake{answers: answers}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// ServeHTTP answers; one request at a time is all that a command makes.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	asked := r.Method + " " + r.RequestURI
	f.asked = append(f.asked, strings.TrimSpace(asked+" "+string(body)))
	f.token = r.Header.Get("Authorization")
	if f.status != 0 {
		w.WriteHeader(f.status)
		io.WriteString(w, f.refusal)
		return
	}
	answer, ok := f.answers[asked]
	if !ok {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"title":"No such thing","detail":"look elsewhere"}`)
		return
	}
	io.WriteString(w, answer)
}

// on runs one command line against the fake.
func (f *fake) on(t *testing.T, line string) result {
	t.Helper()
	return typed{args: strings.Fields(line), env: map[string]string{"POSTERN_ADMIN": f.URL}}.run(t)
}

const status = `{"pending":3,"awaiting_retry":2,"in_flight":1,"dead_letter":4,"delivered_last_hour":10,"failed_last_hour":5,
"oldest_pending":"2026-03-04T11:55:00Z","avg_delivery_ms_last_hour":12.5,"spool_bytes":1048576,"spool_max_bytes":16777216,"sync":{"enabled":false},
"instance_id":"i-1","version":"9.9","ready":true,"reasons":[]}`

const event = `{"id":"evt_1","endpoint":"partner-a","state":"failed","method":"POST","url":"https://partner.example/postback",
"attempt_count":2,"max_attempts":5,"accepted_at":"2026-03-04T11:00:00Z","next_attempt_at":"2026-03-04T12:00:30Z","delivered_at":null,
"dead_at":null,"dead_reason":null,"last_error":"http_503","last_status_code":503,"size":2048`

const letter = `{"id":"evt_9","endpoint":"partner-a","state":"dead_letter","method":"GET","url":"https://partner.example/postback",
"attempt_count":5,"max_attempts":5,"accepted_at":"2026-03-03T11:00:00Z","next_attempt_at":null,"delivered_at":null,
"dead_at":"2026-03-04T10:00:00Z","dead_reason":"exhausted","last_error":"timeout","last_status_code":null,"size":0}`

const endpoint = `{"name":"partner-a","configured":true,"url":"https://partner.example/postback","breaker":{"state":"open",
"consecutive_failures":10,"failure_threshold":10,"opened_at":"2026-03-04T11:58:00Z","cooldown_seconds":300},"paused":false,"pause_reason":null,
"limiter":{"limits":[{"limit":100,"window_seconds":60,"used":7}],"throttled_until":"2026-03-04T12:01:00Z","next_allowed_at":null,"concurrency":32},
"queue_depth":3,"queue":{"pending":1,"awaiting_retry":2,"in_flight":0,"dead_letter":4},
"p50_ms":8.2,"p95_ms":120,"p99_ms":2500,"sample_count":42}`

const analysis = `{"endpoints":[{"endpoint":"partner-a","dead_count":60,"primary_error":"http_401","primary_status_code":401,
"first_dead":"2026-03-04T10:00:00Z","last_dead":"2026-03-04T11:00:00Z","avg_attempts":1,
"findings":[{"pattern":"credentials","count":60,"message":"60 were refused with 401.","action":"Renew the credentials, reset, replay."}]}]}`

func answers() map[string]string {
	return map[string]string{
		"GET /healthz": "ok\n", "GET /readyz": `{"ready":true,"reasons":[]}`,
		"GET /api/v1/status":                                 status,
		"GET /api/v1/events?limit=50":                        `{"events":[` + event + `}],"next_cursor":"c2"}`,
		"GET /api/v1/events?limit=50&state=delivered":        `{"events":[],"next_cursor":null}`,
		"GET /api/v1/events/evt_1":                           event + `,"attempts":[{"number":1,"started_at":"2026-03-04T11:00:01Z","duration_ms":1500,"status_code":null,"error":"timeout"},{"number":2,"started_at":"2026-03-04T11:30:00Z","duration_ms":8.25,"status_code":503,"error":"http_503"}]}`,
		"GET /api/v1/events/evt_1?reveal=1":                  event + `,"attempts":[],"target":"/x?token=1","headers":[{"name":"X-A","value":"b"}],"body":"{\n}","body_encoding":"utf-8","answer":{"status_code":503,"location":"https://x.example","body":"//4=","body_encoding":"base64"}}`,
		"POST /api/v1/events/evt_1/retry":                    event + "}",
		"DELETE /api/v1/events/evt_1":                        `{"id":"evt_1","deleted":true}`,
		"GET /api/v1/endpoints":                              `{"endpoints":[` + endpoint + `]}`,
		"GET /api/v1/endpoints/partner-a":                    endpoint,
		"POST /api/v1/endpoints/https:%2F%2Fp.example/pause": endpoint,
		"POST /api/v1/endpoints/partner-a/resume":            endpoint,
		"POST /api/v1/endpoints/partner-a/reset":             endpoint,
		"GET /api/v1/dead-letters?limit=50":                  `{"dead_letters":[` + letter + `],"next_cursor":null}`,
		"GET /api/v1/dead-letters/analysis?hours=24":         analysis,
		"GET /api/v1/dead-letters/analysis?hours=1":          `{"endpoints":[]}`,
		"POST /api/v1/dead-letters/purge":                    `{"matched":3,"purged":3,"dry_run":false}`,
		"POST /api/v1/dead-letters/replay":                   `{"matched":3,"replayed":3,"dry_run":false}`,
	}
}

func TestTables(t *testing.T) {
	f := newFake(t, answers())
	for line, want := range map[string]string{
		"status": `
ready                        yes
pending                      3
awaiting retry               2
in flight                    1
dead letters                 4
delivered, last hour         10
failed attempts, last hour   5
oldest pending               11:55:00 (5m ago)
average delivery, last hour  12 ms
spool                        1.0 MiB of 16.0 MiB
sync                         off
instance                     i-1
version                      9.9
`,
		"events": `
ID     ENDPOINT   STATE   TRIES  LAST ERROR  ACCEPTED               NEXT ATTEMPT
evt_1  partner-a  failed      2  http_503    11:00:00 (1h00m ago)   12:00:30 (in 30s)
`,
		"events --state delivered": "\nNo events.\n",
		"events show evt_1": `
id            evt_1
endpoint      partner-a
state         failed
request       POST https://partner.example/postback
accepted      11:00:00 (1h00m ago)
size          2.0 KiB
next attempt  12:00:30 (in 30s)

ATTEMPT  STARTED                  TOOK  STATUS  ERROR
      1  11:00:01 (59m ago)      1.5 s       -  timeout
      2  11:30:00 (30m ago)     8.2 ms     503  http_503
`,
		"events retry evt_1":  "\nevt_1: due now\n",
		"events delete evt_1": "\nevt_1: deleted\n",
		"endpoints": `
ENDPOINT   BREAKER  PENDING  RETRYING  IN FLIGHT  DEAD     P50     P95    P99  NOTE
partner-a  open           1         2          0     4  8.2 ms  120 ms  2.5 s  breaker open: next try 12:03:00 (in 3m)
`,
		"endpoints show partner-a": `
endpoint              partner-a
url                   https://partner.example/postback
breaker               open, opened 11:58:00 (2m ago)
consecutive failures  10 of 10
cooldown              300s
queue                 1 pending, 2 awaiting retry, 0 in flight, 4 dead letters
latency               p50 8.2 ms, p95 120 ms, p99 2.5 s (42 samples)
concurrency           32
limit                 7 of 100 in 60s
note                  breaker open: next try 12:03:00 (in 3m)
`,
		"endpoints pause https://p.example": "\nhttps://p.example: paused\n",
		"endpoints resume partner-a":        "\npartner-a: resumed\n",
		"endpoints reset partner-a":         "\npartner-a: reset, its breaker is closed\n",
		"dead-letters": `
ID     ENDPOINT   REASON     LAST ERROR  TRIES  DIED
evt_9  partner-a  exhausted  timeout         5  10:00:00 (2h00m ago)
`,
		"dead-letters analyze": `
ENDPOINT   DEAD  MOST OFTEN  STATUS  AVG TRIES  FIRST                  LAST
partner-a    60  http_401       401        1.0  10:00:00 (2h00m ago)   11:00:00 (1h00m ago)

partner-a: credentials
  60 were refused with 401.
  -> Renew the credentials, reset, replay.
`,
		"dead-letters analyze --hours 1": "\nNo dead letters in the last 1 hour.\n",
		"dead-letters purge --all --yes": "\n3 dead letters purged.\n",
		"dead-letters purge --dry-run":   "\n3 dead letters would be purged.\n",
		"dead-letters replay --all":      "\n3 dead letters replayed.\n",
		"dead-letters replay --dry-run":  "\n3 dead letters would be replayed.\n",
		"healthcheck":                    "\nready\n",
		"healthcheck --live":             "\nalive\n",
	} {
		got := f.on(t, line)
		if got.code != 0 || squeeze(got.stdout) != squeeze(want[1:]) {
			t.Errorf("postern %s: code %d, got\n%s%s\nwant\n%s", line, got.code, got.stdout, got.stderr, want[1:])
		}
	}
}

// squeeze makes runs of blanks one: that columns are aligned is tested where tables are made.
func squeeze(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}
