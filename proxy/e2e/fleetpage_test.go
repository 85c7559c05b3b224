package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"postern/proxy/e2e/browser"
	"postern/sync/pgtest"
)

// crowd is what a fleet of 1,000 instances and 500 endpoints could have reported: 12 instances fell silent, 20 have
// stopped; every 50th endpoint is open on some instances, every 40th grew slower, and two have dead letters.
const crowd = `
INSERT INTO endpoints (endpoint_url) SELECT 'https://partner-' || lpad(n::text, 3, '0') || '.example/hooks' FROM generate_series(1, 500) n;
INSERT INTO endpoint_names SELECT 'partner-' || endpoint_id, endpoint_id FROM endpoints;
INSERT INTO instances (instance_id, labels, version, started_at, heartbeat_at, stopped_at, pending, awaiting_retry, dead_letter, oldest_pending, spool_bytes, backlog_rows)
	SELECT ('0190a6c0-7b2c-7def-8123-' || lpad(n::text, 12, '0'))::uuid,
		jsonb_build_object('service', (ARRAY['checkout', 'billing', 'mail', 'search', 'crm'])[1 + n % 5], 'region', (ARRAY['eu', 'us', 'ap'])[1 + n % 3]), '1.4.' || n % 3,
		now() - interval '3 days', now() - CASE WHEN n <= 12 THEN interval '20 minutes' ELSE n % 10 * interval '1 second' END,
		CASE WHEN n > 980 THEN now() END, n % 7, n % 4, CASE WHEN n % 90 = 0 THEN 3 ELSE 0 END, CASE WHEN n % 7 > 0 THEN now() - n % 7 * interval '9 seconds' END, 1048576 * (1 + n % 9), n % 3
	FROM generate_series(1, 1000) n;
INSERT INTO instance_endpoint_health (instance_id, endpoint_id, endpoint_name, state, consecutive_failures, failure_threshold, opened_at, cooldown_seconds)
	SELECT i.instance_id, e.endpoint_id, 'partner-' || e.endpoint_id, CASE WHEN e.endpoint_id % 50 = 0 AND i.k % 2 = 0 THEN 'open' ELSE 'closed' END,
		CASE WHEN e.endpoint_id % 50 = 0 THEN 10 ELSE 0 END, 10, CASE WHEN e.endpoint_id % 50 = 0 AND i.k % 2 = 0 THEN now() - interval '4 minutes' END, 300
	FROM endpoints e JOIN (SELECT instance_id, row_number() OVER (ORDER BY instance_id) AS k FROM instances) i ON i.k % 50 = e.endpoint_id % 50;
INSERT INTO endpoint_hours (instance_id, endpoint_id, hour, attempts, delivered, delivered_ms, buckets, counts)
	SELECT '0190a6c0-7b2c-7def-8123-000000000100', e.endpoint_id, date_trunc('hour', now(), 'UTC') - h * interval '1 hour', 60, 60, 6000,
		ARRAY[latency_bucket(t.ms), latency_bucket(t.ms * 2)], ARRAY[56, 4]
	FROM endpoints e, generate_series(0, 23) h,
		LATERAL (SELECT (60 + e.endpoint_id % 200 + (e.endpoint_id * 7 + h * 13) % 40) * CASE WHEN e.endpoint_id % 40 = 0 AND h < 3 THEN 4 - h ELSE 1 END AS ms) t;
INSERT INTO webhook_queue (endpoint_id, endpoint_url, status, attempt_count, max_attempts, created_at, last_error, last_status_code, event_id, instance_id, dead_reason, endpoint_name, dead_at, version)
	SELECT e.endpoint_id, e.endpoint_url, 'dead_letter', 5, 5, now() - interval '2 hours', CASE WHEN e.endpoint_id = 50 THEN 'http_503' ELSE 'http_401' END, CASE WHEN e.endpoint_id = 50 THEN 503 ELSE 401 END,
		'evt_' || e.endpoint_id || '_' || n, '0190a6c0-7b2c-7def-8123-000000000100', 'exhausted', 'partner-' || e.endpoint_id, now() - interval '20 minutes' + n * interval '5 seconds', 1
	FROM endpoints e, generate_series(1, 60) n WHERE e.endpoint_id IN (50, 77);
ANALYZE;
`

// fleetPage runs `postern fleet serve` and returns its address.
func fleetPage(t *testing.T, db *pgtest.DB, args ...string) (address string, stop func() int) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"fleet", "serve", "--listen", "127.0.0.1:0", "--dsn", db.DSN, "--schema", db.Schema}, args...)...)
	cmd.Dir = t.TempDir()
	log := &logBuffer{}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("fleet serve:\n%s", log)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it says %q: %v", line, err)
	}
	address = strings.TrimSuffix(strings.Fields(line)[len(strings.Fields(line))-1], "/")
	return address, func() int {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		return cmd.ProcessState.ExitCode()
	}
}

// migrate makes the schema ready.
func migrate(t *testing.T, db *pgtest.DB) {
	t.Helper()
	if out, err := exec.Command(binary, "sync", "migrate", "--dsn", db.DSN, "--schema", db.Schema).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// fleetAnswer asks the page's API.
func fleetAnswer(t *testing.T, url string, into any) {
	t.Helper()
	resp, err := client.Get(url)
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d", url, resp.StatusCode)
	}
	must(t, json.NewDecoder(resp.Body).Decode(&struct{ Answer any }{into}))
}

// The page of a large fleet shows what Postgres has, finds one among a thousand, and stands at every width.
func TestFleetPage(t *testing.T) {
	t.Parallel()
	axe := browser.Axe(t)
	db := pgtest.New(t)
	migrate(t, db)
	db.Exec(crowd)
	base, stop := fleetPage(t, db)
	tab := browser.Open(t, base)
	tab.Look(1400, 1000, "light")
	tab.Go("/")
	tab.See(`document.querySelector('[data-figure=live]') && document.querySelectorAll('svg.spark').length > 5 && !document.body.innerText.includes('Looking')`)
	var st struct {
		Pending    int `json:"pending"`
		DeadLetter int `json:"dead_letter"`
		Instances  struct{ Live, Silent, Stopped int }
	}
	fleetAnswer(t, base+"/api/v1/fleet/status", &st)
	if st.Instances.Live != 968 || st.Instances.Silent != 12 || st.Instances.Stopped != 20 || st.DeadLetter != 120 {
		t.Errorf("status: %+v", st)
	}
	for key, want := range map[string]int{"live": st.Instances.Live, "pending": st.Pending, "dead_letter": st.DeadLetter} {
		if got := strings.ReplaceAll(figure(tab, key), ",", ""); got != fmt.Sprint(want) { // 2,904 is 2904
			t.Errorf("%s: the page shows %s, the API %d", key, got, want)
		}
	}
	tab.SeeText("#alerts", "Alerts")
	tab.SeeText(".attention li", "https://partner-077.example/hooks Dead letters growing: 60 given up in the last 1h")
	tab.SeeText(".attention li", "https://partner-050.example/hooks open on")
	tab.SeeText(".attention li", "60 events were refused with 401 or 403")
	tab.SeeText("tbody tr", "https://partner-040.example/hooks")

	fleetPlaces(tab)
	fleetLooks(t, tab, axe)
	tab.Clean()
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// fleetPlaces finds one among many in each list.
func fleetPlaces(tab *browser.Tab) {
	tab.Go("/#/endpoints?show=slow")
	tab.See(`document.querySelectorAll('tbody tr').length === 12 && document.querySelectorAll('.trend .warn').length === 12`)
	tab.Go("/#/endpoints")
	tab.See(`document.querySelectorAll('tbody tr').length === 50`)
	tab.SeeText(".pager", "1–50 of 500")
	tab.Click(".pager button", "Next")
	tab.SeeText(".pager", "51–100 of 500")
	tab.Go("/#/endpoint/" + "https%3A%2F%2Fpartner-050.example%2Fhooks")
	tab.SeeText("h1", "https://partner-050.example/hooks")
	tab.See(`document.querySelector('svg.chart .p95') && document.querySelectorAll('section[aria-labelledby=where] tbody tr').length > 5`)
	tab.Go("/#/instances")
	tab.SeeText("section[aria-labelledby=groups]", "checkout")
	tab.SeeText(".bar", "1,000 of 1,000 instances")
	tab.Go("/#/instances?state=silent")
	tab.SeeText(".bar", "12 of 1,000 instances")
	tab.Go("/#/instances?find=000000000777")
	tab.SeeText(".bar", "1 of 1,000 instances")
	tab.Go("/#/dead-letters")
	tab.SeeText(".patterns", "Outage: 60 events were given up within one hour")
}

func fleetLooks(t *testing.T, tab *browser.Tab, axe string) {
	t.Helper()
	for _, look := range []struct {
		width   int64
		colours string
	}{{1400, "light"}, {400, "dark"}, {400, "light"}, {1400, "dark"}} {
		tab.Look(look.width, 900, look.colours)
		for name, place := range map[string]string{"fleet": "", "fleet-endpoint": "endpoint/https%3A%2F%2Fpartner-050.example%2Fhooks", "fleet-instances": "instances", "fleet-dead-letters": "dead-letters"} {
			where := fmt.Sprintf("%s-%s-%d", name, look.colours, look.width)
			tab.Go("/#/" + place)
			tab.See(fmt.Sprintf("location.hash === %q && document.querySelector('h1') && !document.querySelector('.empty') && document.querySelector('table, figure, .finding')", "#/"+place))
			if wide := browser.Eval[float64](tab, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
				t.Errorf("%s: %v pixels too wide", where, wide)
			}
			tab.Accessible(axe, where)
			if dir := os.Getenv("POSTERN_SHOTS"); dir != "" { // for people who want to look
				must(t, os.WriteFile(filepath.Join(dir, where+".png"), tab.Shot(), 0o600))
			}
		}
	}
}

// Only a loopback address goes without a token, a token opens the API alone, and a Postgres that is away is told.
func TestFleetPageIsGuarded(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	migrate(t, db)
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte("TOKEN-42\n"), 0o600))
	base, _ := fleetPage(t, db, "--token-file", token)
	for _, c := range []struct {
		path    string
		want    int
		headers []string
	}{
		{"/", 200, nil}, {"/ui/fleet.js", 200, nil}, {"/api/v1/fleet/status", 401, nil},
		{"/api/v1/fleet/status", 401, []string{"Authorization: Bearer TOKEN-41"}}, {"/api/v1/fleet/status", 200, []string{"Authorization: Bearer TOKEN-42"}},
		{"/api/v1/fleet/status", 403, []string{"Authorization: Bearer TOKEN-42", "Origin: https://evil.example"}}, {"/", 403, []string{"Sec-Fetch-Site: cross-site"}},
	} {
		req, err := http.NewRequest("GET", base+c.path, nil)
		must(t, err)
		for _, h := range c.headers {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Set(name, value)
		}
		resp, err := client.Do(req)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %v: %d, want %d", c.path, c.headers, resp.StatusCode, c.want)
		}
	}
	// A Postgres that nobody has made ready.
	bare := pgtest.New(t)
	away, _ := fleetPage(t, bare)
	resp, err := (&http.Client{Timeout: patience}).Get(away + "/api/v1/fleet/status")
	must(t, err)
	defer resp.Body.Close()
	var told struct{ Detail string }
	must(t, json.NewDecoder(resp.Body).Decode(&told))
	if resp.StatusCode != 503 || !strings.Contains(told.Detail, "postern sync migrate") {
		t.Errorf("%d %q", resp.StatusCode, told.Detail)
	}
}

// What is typed wrong is refused before anything is asked.
func TestFleetServeRefuses(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"--listen 0.0.0.0:0":                      "needs a token",
		"--listen nowhere":                        "is not HOST:PORT",
		"--token-file /nowhere/at/all":            "cannot be read",
		"--p95-factor 1":                          "must be more than 1",
		"--listen :0 --token-file " + "/dev/null": "is empty",
	} {
		out, err := exec.Command(binary, append([]string{"fleet", "serve", "--dsn", "postgres://127.0.0.1:1/x"}, strings.Fields(args)...)...).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
}
