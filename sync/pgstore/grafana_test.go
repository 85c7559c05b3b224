package pgstore_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"postern/sync/pgtest"
)

// Every statement of the dashboard for Postgres runs, whatever the search path is, and each shows something on a fleet
// where there is something to show.
func TestDashboardStatements(t *testing.T) {
	s, db := migrated(t)
	var dash struct {
		Templating struct {
			List []struct {
				Name  string
				Type  string
				Query any
			}
		}
		Panels []struct {
			Title   string
			Targets []struct{ RawSQL string }
		}
	}
	text, err := os.ReadFile("../../configs/grafana/postgres.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &dash); err != nil {
		t.Fatal(err)
	}
	var statements = map[string]string{}
	for _, v := range dash.Templating.List {
		if v.Type == "query" {
			statements["variable "+v.Name] = v.Query.(string)
		}
	}
	for _, p := range dash.Panels {
		for _, target := range p.Targets {
			statements[p.Title] = target.RawSQL
		}
	}
	letters := letters(partner, 60, time.Minute, 503, "http_503")
	for i := range letters {
		letters[i].Attempt.StatusCode, letters[i].Attempt.Duration = 503, 3*time.Second
	}
	write(t, s, letters...)
	report(t, s, health("open", 12))
	endpoints := strings.Join(db.Rows("SELECT quote_literal(endpoint_url) FROM endpoints")[0], "")
	words := strings.NewReplacer("${schema}", db.Schema, "${endpoint:sqlstring}", endpoints,
		"$__timeFrom()", "'"+time.Now().Add(-24*time.Hour).UTC().Format(time.RFC3339)+"'", "$__timeTo()", "'"+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+"'")
	left := regexp.MustCompile(`\$[_{a-z]`)
	if len(statements) < 14 {
		t.Fatalf("only %d statements", len(statements))
	}
	for title, sql := range statements {
		sql = words.Replace(sql)
		if left.MatchString(sql) {
			t.Errorf("%s: something is not filled in: %s", title, sql)
		}
		pgtest.Run(t, db.DSN, sql) // Grafana's connection knows nothing of our search path
		if len(db.Rows(sql)) == 0 {
			t.Errorf("%s: finds nothing:\n%s", title, sql)
		}
	}
}
