package pgstore_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

// grants are those that docs/sync.md lists, with the names of this test.
func grants(t *testing.T, schema, role string) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/sync.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sql, found := strings.Cut(string(doc), "```sql\n-- grants\n")
	sql, _, closed := strings.Cut(sql, "```")
	if !found || !closed {
		t.Fatal("docs/sync.md has no grants")
	}
	return strings.NewReplacer("postern_app", role, "SCHEMA postern", "SCHEMA "+schema, "postern.", schema+".").Replace(sql)
}

func as(t *testing.T, dsn, role string) func(*pgstore.Config) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "secret")
	return func(c *pgstore.Config) { c.DSN = u.String() }
}

// TestARoleThatMayCreateNothing works on a schema that its owner has made, with the grants of the documentation and no
// more, partitions and retention included.
func TestARoleThatMayCreateNothing(t *testing.T) {
	_, db := migrated(t)
	role := db.Schema + "_app"
	db.Exec(`CREATE ROLE ` + role + ` LOGIN PASSWORD 'secret'`)
	t.Cleanup(func() { dropRole(t, db.DSN, role) })
	s := open(t, db, as(t, db.DSN, role))
	if err := s.Migrate(t.Context()); pgstore.Classify(err) != pgstore.KindSetup {
		t.Errorf("without any right: %v", err)
	}
	db.Exec(grants(t, db.Schema, role))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone := pending("gone")
	gone.Version, gone.Status = 2, ""
	write(t, s, delivered("a", 1), tried("a", 2, "failed", 500, "http_500", 1), gone)
	report(t, s, health("open", 10))
	maintain(t, s, true)
	// A partition that is made later is written through its parent, and needs no grant of its own.
	db.Exec(`DROP TABLE endpoint_latency_p` + now.Format("20060102"))
	maintain(t, s, true)
	write(t, s, delivered("b", 1))
	if err := s.MigrateDown(t.Context(), 1); pgstore.Classify(err) != pgstore.KindSetup {
		t.Errorf("taking a migration back: %v", err)
	}
	same(t, "events", db.Value(`SELECT count(*) FROM webhook_queue`), 2)
}

func TestARoleThatMayNotCreateTheSchema(t *testing.T) {
	db := pgtest.New(t)
	role := db.Schema + "_app"
	db.Exec(`CREATE ROLE ` + role + ` LOGIN PASSWORD 'secret'`)
	t.Cleanup(func() { dropRole(t, db.DSN, role) })
	err := open(t, db, as(t, db.DSN, role)).Migrate(t.Context())
	if pgstore.Classify(err) != pgstore.KindSetup || !strings.Contains(err.Error(), "docs/sync.md") {
		t.Errorf("kind %v of %v", pgstore.Classify(err), err)
	}
}

func dropRole(t *testing.T, dsn, role string) {
	t.Helper()
	pgtest.Run(t, dsn, "DROP OWNED BY "+role+"; DROP ROLE "+role)
}
