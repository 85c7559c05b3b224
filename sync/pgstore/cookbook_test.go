package pgstore_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/sync/pgstore"
)

// recipes are the SQL blocks of the cookbook and of the document about sync, in order.
func recipes(t *testing.T) []string {
	t.Helper()
	return slices.Concat(blocksOf(t, "../../docs/sql-cookbook.md"), blocksOf(t, "../../docs/sync.md"))
}

func blocksOf(t *testing.T, file string) (blocks []string) {
	t.Helper()
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(doc), "```sql\n")[1:] {
		block, _, closed := strings.Cut(part, "```")
		if !closed {
			t.Fatal("a block has no end")
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// TestCookbook runs every query on a fleet in which each of them finds something, as the role that it proposes.
func TestCookbook(t *testing.T) {
	s, db := migrated(t)
	var rows []pgstore.Row
	for i := range 25 {
		r := delivered("evt_1", 3*time.Second)
		r.EventID += strings.Repeat("x", i)
		rows = append(rows, r)
	}
	write(t, s, rows...)
	named := letters("https://partner.example/pb", 60, time.Minute, 503, "http_503")
	for i := range named {
		named[i].EndpointName = "partner-a"
		named[i].Attempt.StatusCode, named[i].Attempt.Duration = 503, time.Second
	}
	write(t, s, named...)
	write(t, s, pending("p"), tried("f", 1, "failed", 503, "http_503", time.Millisecond))
	report(t, s, health("open", 12))

	role := db.Schema + "_reader"
	names := strings.NewReplacer("postern_reader", role, "SCHEMA postern", "SCHEMA "+db.Schema, "search_path = postern", "search_path = "+db.Schema)
	queries := 0
	for _, block := range recipes(t) {
		if strings.HasPrefix(block, "-- grants") {
			continue // see TestARoleThatMayCreateNothing
		}
		block = names.Replace(block)
		if strings.HasPrefix(block, "-- reader") {
			db.Exec(block)
			t.Cleanup(func() { dropRole(t, db.DSN, role) })
			continue
		}
		for _, query := range statements(block) {
			queries++
			if !strings.HasPrefix(query, "SET") && len(db.Rows(query)) == 0 {
				t.Errorf("finds nothing:\n%s", query)
			}
		}
	}
	if queries < 15 {
		t.Errorf("only %d queries", queries)
	}
	db.Exec(`ALTER ROLE ` + role + ` PASSWORD 'secret'`)
	cfg := pgstore.Config{}
	as(t, db.DSN, role)(&cfg)
	r := reader(t, cfg.DSN, db.Schema)
	if list, err := r.FleetPercentilesOf(t.Context(), nil, time.Hour); err != nil || len(list) != 2 {
		t.Errorf("percentiles: %v, %v", list, err)
	}
	if _, err := r.FleetStuck(t.Context(), pgstore.Windows{}); err != nil {
		t.Error(err)
	}
	if _, err := r.FleetStatusOf(t.Context(), []string{partner}); err != nil {
		t.Error(err)
	}
}

// statements cuts a block at the semicolons, and leaves out comments.
func statements(block string) (out []string) {
	var lines []string
	for line := range strings.Lines(block) {
		code, _, _ := strings.Cut(line, "--")
		lines = append(lines, strings.TrimRight(code, " \n"))
	}
	for _, s := range strings.Split(strings.Join(lines, "\n"), ";") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// TestCookbookNamesEveryColumn of the relations that it lists.
func TestCookbookNamesEveryColumn(t *testing.T) {
	_, db := migrated(t)
	doc, err := os.ReadFile("../../docs/sql-cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "## Columns")
	for _, relation := range []string{"webhook_queue", "endpoint_latency", "endpoint_health", "dead_letter_analysis", "dead_letter_findings"} {
		_, row, found := strings.Cut(table, "| `"+relation+"`")
		row, _, _ = strings.Cut(row, "\n")
		want := db.Value(`SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = '` + relation + `'::regclass AND attnum > 0 AND NOT attisdropped`)
		_, row, _ = strings.Cut(row, "|")
		if i := strings.Index(row, " (`"); i >= 0 { // the states
			_, rest, _ := strings.Cut(row[i:], ")")
			row = row[:i] + rest
		}
		if got := strings.Join(strings.FieldsFunc(row, func(r rune) bool { return strings.ContainsRune("`,| ", r) }), " "); !found || got != want {
			t.Errorf("%s:\n got %s\nwant %s", relation, got, want)
		}
	}
}
