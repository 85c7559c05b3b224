package configs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// panel is what of a dashboard's panel has to fit with the others.
type panel struct {
	ID         int
	Title      string
	GridPos    struct{ X, Y, W, H int }
	Datasource *struct{ UID string }
}

// TestGrafanaDashboards holds the dashboards to the schema of what Grafana takes, and to what no schema says: panels have
// numbers of their own and places of their own, and ask a data source that the person who imports them chooses.
func TestGrafanaDashboards(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("testdata/grafana-dashboard.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("grafana/*.json")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var dash struct{ Panels []panel }
		if err := json.Unmarshal(text, &dash); err != nil {
			t.Fatal(err)
		}
		for i, p := range dash.Panels {
			p.beside(t, name, dash.Panels[:i])
		}
	}
}

// beside compares a panel with those before it.
func (p panel) beside(t *testing.T, name string, before []panel) {
	t.Helper()
	at := p.GridPos
	if at.X+at.W > 24 {
		t.Errorf("%s: %q is wider than the page", name, p.Title)
	}
	if p.Datasource != nil && !strings.HasPrefix(p.Datasource.UID, "$") {
		t.Errorf("%s: %q asks the data source %q, which nobody else has", name, p.Title, p.Datasource.UID)
	}
	for _, other := range before {
		o := other.GridPos
		if p.ID == other.ID {
			t.Errorf("%s: %q and %q have one number", name, p.Title, other.Title)
		}
		if at.X < o.X+o.W && o.X < at.X+at.W && at.Y < o.Y+o.H && o.Y < at.Y+at.H {
			t.Errorf("%s: %q lies over %q", name, p.Title, other.Title)
		}
	}
}

// TestGrafanaSchemaRefuses: the schema is strict enough to notice something.
func TestGrafanaSchemaRefuses(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("testdata/grafana-dashboard.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile("grafana/postgres.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"schemaVersion": 39`, `"schemaVersion": 12`}, {`"type": "stat"`, `"type": "singlestat"`}, {`"refId": "A"`, `"refid": "A"`},
		{`"gridPos"`, `"gridpos"`}, {`"rawSql"`, `"rawsql"`},
	} {
		if !strings.Contains(string(whole), change[0]) {
			t.Fatalf("the dashboard has no %s", change[0])
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(string(whole), change[0], change[1], 1)))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(doc) == nil {
			t.Errorf("%s passes", change[1])
		}
	}
}
