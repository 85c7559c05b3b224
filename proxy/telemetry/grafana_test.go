package telemetry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// dashboard is what is looked at of one in Grafana's JSON.
type dashboard struct {
	UID, Title, Description string
	Templating              struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct {
			Unit       string
			Thresholds struct{ Steps []json.RawMessage }
		}
	}
	Targets []struct {
		RefID, Expr, RawSQL string
		Datasource          struct{ Type, UID string }
	}
}

func readDashboard(t *testing.T, file string) dashboard {
	t.Helper()
	text, err := os.ReadFile("../../configs/grafana/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Both dashboards are whole: panels that say what they show, in a unit, with the data source that a person chose, and none
// on top of another.
func TestShippedDashboards(t *testing.T) {
	for _, file := range []string{"prometheus.json", "postgres.json"} {
		d := readDashboard(t, file)
		if d.UID == "" || d.Title == "" || d.Description == "" || d.Templating.List[0].Type != "datasource" || len(d.Panels) < 15 {
			t.Errorf("%s: %+v", file, d)
		}
		taken, ids := map[[2]int]string{}, map[int]bool{}
		for _, p := range d.Panels {
			if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %q has no place or number of its own", file, p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: %q covers %q", file, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			if p.Type == "row" {
				continue
			}
			if p.Description == "" || p.Datasource.UID != "${datasource}" || p.FieldConfig.Defaults.Unit == "" ||
				len(p.FieldConfig.Defaults.Thresholds.Steps) == 0 || len(p.Targets) == 0 {
				t.Errorf("%s: %q is not whole", file, p.Title)
			}
		}
	}
}

// grafanaWords are what Grafana fills in before it asks.
var grafanaWords = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$endpoint", ".*")

// Every expression of the dashboard for Prometheus can be parsed, and looks at metrics and labels that there are.
func TestDashboardExpressions(t *testing.T) {
	page := busyPage(t)
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	for _, p := range readDashboard(t, "prometheus.json").Panels {
		for _, target := range p.Targets {
			expr := grafanaWords.Replace(target.Expr)
			page.knows(t, p.Title, expr)
			rules = append(rules, rule{"panel:" + regexp.MustCompile(`[^a-z]+`).ReplaceAllString(strings.ToLower(p.Title), "_") + target.RefID, expr})
		}
	}
	if len(rules) < 20 {
		t.Fatalf("only %d expressions", len(rules))
	}
	text, err := yaml.Marshal(map[string]any{"groups": []map[string]any{{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "panels.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, dir, "check", "rules", "panels.yaml")
}

// Somebody sees every metric that there is: a family that no panel and no alert looks at would not be missed.
func TestDashboardShowsEveryFamily(t *testing.T) {
	var all strings.Builder
	for _, p := range readDashboard(t, "prometheus.json").Panels {
		for _, target := range p.Targets {
			all.WriteString(target.Expr)
		}
	}
	for family := range busyPage(t).kinds {
		if strings.HasPrefix(family, "postern_") && family != "postern_sync_rows_total" && !strings.Contains(all.String(), family) {
			t.Errorf("no panel looks at %s", family)
		}
	}
}
