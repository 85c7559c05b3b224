package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/configs"
	"postern/proxy/cli/term"
	"postern/proxy/findings"
	"postern/proxy/fleet"
	"postern/sync/pgstore"
)

// terminal is a session whose standard output is a terminal of 200 columns.
func terminal() (*session, *bytes.Buffer) {
	var b bytes.Buffer
	s := &session{out: &term.Writer{Writer: &b, TTY: true, Color: true, Width: 200}}
	s.now = time.Now
	return s, &b
}

func TestBarsOnATerminal(t *testing.T) {
	slow, half := 3000.0, 1500.0
	s, b := terminal()
	err := s.percentileTable([]pgstore.Percentiles{
		{EndpointURL: "https://slow.example", P95MS: &slow, SampleCount: 25, Exact: true}, {EndpointURL: "https://half.example", P95MS: &half}, {EndpointURL: "https://none.example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"P95 BESIDE THE SLOWEST", "████████████", "██████░░░░░░", "\x1b[33m", "merged", "exact"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
	s, b = terminal()
	if err := s.slowTable([]pgstore.EndpointHealth{{EndpointURL: "https://slow.example", State: "open", P95MS: &slow}}); err != nil || !strings.Contains(b.String(), "████████████") {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestWhatOthersSayCannotSteerTheTerminal(t *testing.T) {
	s, b := terminal()
	s.out.Color = false
	evil := "https://a.example\x1b[2J\u202e"
	found := fleet.Alerts{Firing: true, Alerts: []fleet.Alert{{Name: fleet.AlertP95, Endpoint: evil, Message: evil, Action: evil, Unit: "events", Value: 3, Threshold: 2}}}
	if err := s.alerts(found); err != nil {
		t.Fatal(err)
	}
	list := []fleet.Instance{{Instance: pgstore.Instance{ID: "i", Version: evil, Live: true}, Labels: []byte(`{"b":"\u001b[2J","a":"1"}`)}}
	if err := s.instanceTable(fleet.Status{Instances: list}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e") || !strings.Contains(b.String(), "a=1 b=?[2J") {
		t.Errorf("%q", b)
	}
}

func TestANameThatMeansTwoURLs(t *testing.T) {
	status := 503
	of := func(name, url string) fleet.Analysis {
		return fleet.Analysis{EndpointURL: url, Analysis: findings.Analysis{
			Endpoint: name, DeadCount: 2, PrimaryError: "http_503", PrimaryStatusCode: &status,
			Findings: []findings.Finding{{Pattern: findings.Cluster, Count: 2, Message: "Many.", Action: "Wait."}},
		}}
	}
	s, b := terminal()
	s.out.Color = false
	err := s.analysis(analyses([]fleet.Analysis{of("partner", "https://eu.example/pb"), of("partner", "https://us.example/pb"), of("one", "https://one.example/pb")}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"partner (https://eu.example/pb)", "partner (https://us.example/pb)", "\none ", "503", "one: cluster\n  Many.\n  -> Wait."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
}

func TestAgo(t *testing.T) {
	for in, want := range map[string]string{"90m": "1h30m", "24h": "24h", "48h": "2d", "7d": "7d", "1.5d": "36h", "30s": "30s", "1h0m5s": "1h0m5s", "3660d": "3660d"} {
		var a ago
		if err := a.UnmarshalText([]byte(in)); err != nil || a.String() != want {
			t.Errorf("%s: %s, %v, want %s", in, a, err, want)
		}
	}
	for _, in := range []string{"", "0s", "-1h", "d", "NaNd", "Infd", "1w", "3661d", "99999999h", "2026-01-01"} {
		var a ago
		if err := a.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q is taken for %s", in, a)
		}
	}
}

func TestWindowsOfAConfiguration(t *testing.T) {
	cfg, err := configs.Load(configs.Options{Path: "../../configs/affiliate.yaml", Getenv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	w := (&fleetAlertsCmd{}).windows(cfg)
	if len(w.ByURL) < len(cfg.Endpoints) || w.Default.Longest <= 0 {
		t.Errorf("%+v", w)
	}
	for i := range cfg.Endpoints {
		e := &cfg.Endpoints[i]
		one, ok := w.ByURL[e.URL.WithoutQuery()]
		if !ok || one != window(e.Policy) {
			t.Errorf("%s: %+v", e.Name, one)
		}
		for _, m := range e.Match {
			if w.ByURL[m.Origin()].Longest < one.Longest {
				t.Errorf("%s: its matches have %+v", e.Name, w.ByURL[m.Origin()])
			}
		}
	}
	shared := filepath.Join(t.TempDir(), "postern.yaml")
	text := "endpoints:\n  - { name: a, url: https://a.example, retry: { schedule: [1m] } }\n  - { name: b, url: https://a.example?key=1, retry: { schedule: [9h] } }\n" +
		"  - { name: c, url: https://c.example, retry: { schedule: [1m] } }\n"
	if err := os.WriteFile(shared, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if cfg, err = configs.Load(configs.Options{Path: shared}); err != nil {
		t.Fatal(err)
	}
	w = (&fleetAlertsCmd{}).windows(cfg)
	if w.ByURL["https://a.example"] != window(cfg.Endpoints[1].Policy) || w.ByURL["https://c.example"] != w.Default {
		t.Errorf("endpoints that share an endpoint_url: %+v", w)
	}
	if w := (&fleetAlertsCmd{thresholdFlags: thresholdFlags{StuckAfter: time.Hour}}).windows(cfg); w.Default.Longest != time.Hour || w.ByURL != nil {
		t.Errorf("by hand: %+v", w)
	}
}
