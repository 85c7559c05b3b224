package telemetry

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// rulesDir has the alerts that we ship for Prometheus, with tests of their own.
const rulesDir = "../../configs/prometheus/"

type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert       string
			Expr        string
			For         string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

var (
	metricName = regexp.MustCompile(`\bpostern_[a-z0-9_]+`)
	partOf     = regexp.MustCompile(`_(bucket|sum|count)$`)
	matcher    = regexp.MustCompile(`([a-z_]+)="([a-z_]*)"`)
)

// TestShippedAlerts: each names metrics that there are, and says what to do, in itself and in the runbook.
func TestShippedAlerts(t *testing.T) {
	text, err := os.ReadFile(rulesDir + "postern.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file ruleFile
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 7 {
		t.Fatalf("%d groups", len(file.Groups))
	}
	runbook, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	page := busyPage(t)
	for _, rule := range file.Groups[0].Rules {
		if !strings.HasPrefix(rule.Alert, "Postern") {
			t.Errorf("%q has not our prefix", rule.Alert)
		}
		if !strings.Contains(string(runbook), "`"+rule.Alert+"`") {
			t.Errorf("the runbook does not say what to do about %s", rule.Alert)
		}
		page.knows(t, rule.Alert, rule.Expr)
		if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || !strings.Contains(rule.Annotations["description"], "postern ") {
			t.Errorf("%s does not say how bad it is and what to do", rule.Alert)
		}
	}
}

// knows checks that an expression looks at metrics that there are, with values of labels that there are.
func (p page) knows(t *testing.T, where, expr string) {
	t.Helper()
	names := metricName.FindAllString(expr, -1)
	if len(names) == 0 {
		t.Errorf("%s looks at no metric of ours: %s", where, expr)
	}
	for _, name := range names {
		if kind := p.kinds[name]; kind == "" && p.kinds[partOf.ReplaceAllString(name, "")] != histogram {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
	for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
		if !strings.Contains(strings.Join(p.order, "\n"), "|"+m[1]+"="+m[2]) {
			t.Errorf("%s: no series has %s", where, m[0])
		}
	}
}

// busyPage has a series of every family.
func busyPage(t *testing.T) page {
	t.Helper()
	m := New(Config{RejectReasons: []string{"spool_full"}, Source: SourceFunc(func() Gauges { return Gauges{Endpoints: []EndpointGauges{{Endpoint: "a"}}} })})
	m.Configured("a")
	m.Rejected("no_target")
	return scrape(t, m)
}

// TestShippedAlertsByPromtool goes through the rules' own tests where Prometheus's tool is at hand (Debian: prometheus).
func TestShippedAlertsByPromtool(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "postern.rules.yaml"}, {"test", "rules", "postern.rules.test.yaml"}} {
		promtool(t, rulesDir, args...)
	}
}

// promtool runs Prometheus's tool. Without it the expressions are checked for names of metrics alone, and the test fails
// where CI is set.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("promtool is needed; .ci/examples installs it")
	}
	if err != nil {
		t.Skip("promtool is not on this machine (Debian: prometheus)")
	}
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
