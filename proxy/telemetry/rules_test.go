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

// TestShippedAlerts: each names metrics that there are, and says what to do.
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
	page := busyPage(t)
	for _, rule := range file.Groups[0].Rules {
		names := metricName.FindAllString(rule.Expr, -1)
		if len(names) == 0 || !strings.HasPrefix(rule.Alert, "Postern") {
			t.Errorf("%q looks at no metric of ours", rule.Alert)
		}
		for _, name := range names {
			if kind := page.kinds[name]; kind == "" && page.kinds[partOf.ReplaceAllString(name, "")] != histogram {
				t.Errorf("%s: there is no metric %s", rule.Alert, name)
			}
		}
		for _, m := range matcher.FindAllStringSubmatch(rule.Expr, -1) {
			if !strings.Contains(strings.Join(page.order, "\n"), "|"+m[1]+"="+m[2]) {
				t.Errorf("%s: no series has %s", rule.Alert, m[0])
			}
		}
		if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || !strings.Contains(rule.Annotations["description"], "postern ") {
			t.Errorf("%s does not say how bad it is and what to do", rule.Alert)
		}
	}
}

// busyPage has a series of every family.
func busyPage(t *testing.T) page {
	t.Helper()
	m := New(Config{Source: SourceFunc(func() Gauges { return Gauges{Endpoints: []EndpointGauges{{Endpoint: "a"}}} })})
	m.Configured("a")
	return scrape(t, m)
}

// TestShippedAlertsByPromtool goes through the rules' own tests where Prometheus's tool is at hand (Debian: prometheus).
func TestShippedAlertsByPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("promtool is needed; .ci/examples installs it")
		}
		t.Log("promtool is not there: the rules are checked by TestShippedAlerts alone")
		return
	}
	for _, args := range [][]string{{"check", "rules", "postern.rules.yaml"}, {"test", "rules", "postern.rules.test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = rulesDir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
