package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

const objects = `SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema
	AND c.relname <> 'schema_migrations' AND c.relname <> 'schema_migrations_pkey'`

func TestMigrateUpAndDown(t *testing.T) {
	s, db := migrated(t)
	before := db.Value(objects)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatalf("again: %v", err)
	}
	for n := 1; n <= pgstore.SchemaVersion(); n++ {
		if err := s.MigrateDown(t.Context(), n); err != nil {
			t.Fatalf("down %d: %v", n, err)
		}
		a, err := s.Applied(t.Context())
		if err != nil || a.Version != pgstore.SchemaVersion()-n {
			t.Fatalf("after %d down the version is %d, %v", n, a.Version, err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatalf("up after %d down: %v", n, err)
		}
		same(t, "objects after going down and up", db.Value(objects), before)
	}
	write(t, s, delivered("a", 1))
	if err := s.MigrateDown(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	same(t, "objects after all the way down", db.Value(objects), 0)
	same(t, "functions", db.Value(`SELECT count(*) FROM pg_proc WHERE pronamespace = current_schema::regnamespace`), 0)
}

func TestFiftyStartAtOnce(t *testing.T) {
	db := pgtest.New(t)
	var wg sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		s := open(t, db, instance(fmt.Sprintf("0190a6c0-7b2c-7def-8123-%012d", i)))
		wg.Go(func() {
			if errs[i] = s.Migrate(t.Context()); errs[i] == nil {
				errs[i] = s.Write(t.Context(), []pgstore.Row{delivered("same", 5)})
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	same(t, "migrations", db.Value(`SELECT count(*) FROM schema_migrations`), pgstore.SchemaVersion())
	same(t, "endpoints", db.Value(`SELECT count(*) FROM endpoints`), 1)
	same(t, "rows", db.Value(`SELECT count(DISTINCT instance_id) FROM webhook_queue WHERE event_id = 'same'`), 50)
}

func TestMigrationSQLIsAScript(t *testing.T) {
	db := pgtest.New(t)
	script, err := pgstore.MigrationSQL(db.Schema, 0)
	if err != nil {
		t.Fatal(err)
	}
	db.Exec(script)
	s := open(t, db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, s, delivered("a", 1))
	rest, err := pgstore.MigrationSQL(db.Schema, 2)
	if err != nil || strings.Contains(rest, "CREATE TABLE webhook_queue") || !strings.Contains(rest, "endpoint_health") {
		t.Errorf("from version 2: %v\n%s", err, rest)
	}
	if _, err := pgstore.MigrationSQL("x; DROP TABLE y", 0); err == nil {
		t.Error("a schema that is no name")
	}
}

func TestNewerSchema(t *testing.T) {
	s, db := migrated(t)
	db.Exec(`INSERT INTO schema_migrations (version, name, needs) VALUES (99, '0099_later', 1)`)
	if err := s.Migrate(t.Context()); err != nil {
		t.Errorf("a newer schema that can be worked with: %v", err)
	}
	write(t, s, delivered("a", 1))
	db.Exec(`UPDATE schema_migrations SET needs = 99 WHERE version = 99`)
	err := s.Migrate(t.Context())
	if !errors.Is(err, pgstore.ErrNewerSchema) || pgstore.Classify(err) != pgstore.KindSetup {
		t.Errorf("a newer schema that cannot: %v", err)
	}
	if err := s.MigrateDown(t.Context(), 1); !errors.Is(err, pgstore.ErrNewerSchema) {
		t.Errorf("down from a newer schema: %v", err)
	}
}

// TestWhateverWasDroppedComesBack: the way back that the errors name works for every table, view and function, with all that
// goes by it.
func TestWhateverWasDroppedComesBack(t *testing.T) {
	s, db := migrated(t)
	const list = `SELECT 'TABLE ' || oid::regclass FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
			AND relname <> 'schema_migrations'
		UNION ALL SELECT 'TABLE ' || oid::regclass FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relispartition AND relname LIKE '%default' AND relkind = 'r'
		UNION ALL SELECT 'VIEW ' || oid::regclass FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind = 'v'
		UNION ALL SELECT 'SEQUENCE ' || oid::regclass FROM pg_class WHERE relnamespace = current_schema::regnamespace AND relkind = 'S' AND relname <> 'endpoints_endpoint_id_seq'
		UNION ALL SELECT 'FUNCTION ' || oid::regprocedure FROM pg_proc WHERE pronamespace = current_schema::regnamespace ORDER BY 1`
	const functions = `SELECT count(*) FROM pg_proc WHERE pronamespace = current_schema::regnamespace`
	things, before, called := db.Rows(list), db.Value(objects), db.Value(functions)
	if len(things) < 30 {
		t.Fatalf("%d things: %v", len(things), things)
	}
	for _, thing := range things {
		db.Exec("DROP " + thing[0] + " CASCADE")
		if err := s.MigrateDown(t.Context(), pgstore.SchemaVersion()); err != nil {
			t.Fatalf("down without %s: %v", thing[0], err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatalf("up without %s: %v", thing[0], err)
		}
		same(t, "objects, after "+thing[0]+" was dropped", db.Value(objects), before)
		same(t, "functions, after "+thing[0]+" was dropped", db.Value(functions), called)
	}
	write(t, s, delivered("a", 1))
	same(t, "written", db.Value(`SELECT count(*) FROM webhook_queue`), 1)
}

// TestASchemaThatIsTaken: by somebody's table of one of our names, or by ours without the table of versions. Neither is touched.
func TestASchemaThatIsTaken(t *testing.T) {
	for what, prepare := range map[string]func(t *testing.T) *pgtest.DB{
		"a table of somebody's": func(t *testing.T) *pgtest.DB {
			db := pgtest.New(t)
			db.Exec("CREATE SCHEMA " + db.Schema + "; CREATE TABLE webhook_queue (mine int)")
			return db
		},
		"a function of somebody's": func(t *testing.T) *pgtest.DB {
			db := pgtest.New(t)
			db.Exec("CREATE SCHEMA " + db.Schema + "; CREATE FUNCTION latency_bucket(integer) RETURNS smallint LANGUAGE sql AS 'SELECT 1::smallint'")
			return db
		},
		"no table of versions": func(t *testing.T) *pgtest.DB {
			_, db := migrated(t)
			db.Exec("DROP TABLE schema_migrations")
			return db
		},
	} {
		t.Run(what, func(t *testing.T) {
			db := prepare(t)
			before := db.Value(objects)
			s := open(t, db)
			err := s.Migrate(t.Context())
			for _, want := range []string{"give Postern a schema of its own (sync.schema, --schema)", `DROP SCHEMA "` + db.Schema + `" CASCADE`} {
				if err == nil || !strings.Contains(err.Error(), want) || pgstore.Classify(err) != pgstore.KindSetup {
					t.Errorf("kind %v of %v, want %q", pgstore.Classify(err), err, want)
				}
			}
			if err := s.MigrateDown(t.Context(), 3); err != nil {
				t.Errorf("down: %v", err)
			}
			same(t, "objects", db.Value(objects), before)
		})
	}
}

// TestAViewOfSomebodysIsKept: going down stops at it and says so.
func TestAViewOfSomebodysIsKept(t *testing.T) {
	s, db := migrated(t)
	db.Exec(`CREATE VIEW mine AS SELECT count(*) FROM webhook_queue`)
	err := s.MigrateDown(t.Context(), pgstore.SchemaVersion())
	if err == nil || !strings.Contains(err.Error(), "that Postern did not make") {
		t.Errorf("%v", err)
	}
	same(t, "it works", db.Value(`SELECT * FROM mine`), 0)
}

func TestDamageByAFailedMigrationIsTakenBack(t *testing.T) {
	db := pgtest.New(t)
	db.Exec("CREATE SCHEMA " + db.Schema + "; CREATE TABLE endpoint_hours (mine int)")
	s := open(t, db)
	err := s.Migrate(t.Context())
	if err == nil || !strings.Contains(err.Error(), "endpoint_hours") {
		t.Fatalf("a table of that name is there already: %v", err)
	}
	same(t, "tables", db.Value(`SELECT count(*) FROM pg_tables WHERE schemaname = current_schema`), 1)
}
