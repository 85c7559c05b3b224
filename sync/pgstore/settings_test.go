package pgstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

// foreign are settings of a role or a database under which answers look otherwise than they do by default.
var foreign = []string{
	"datestyle = 'Postgres, DMY'", "datestyle = 'German'", "datestyle = 'SQL, DMY'", "intervalstyle = 'sql_standard'", "timezone = 'Asia/Kolkata'",
	"extra_float_digits = -15", "default_transaction_isolation = 'serializable'", "client_encoding = 'LATIN1'", "array_nulls = off",
	"standard_conforming_strings = off", "bytea_output = 'escape'", "search_path = 'pg_catalog'",
}

// TestSettingsOfTheDatabase: whatever a role or a database has set, rows and answers are the same, directly and through a
// pooler, whose server connections have other clients too.
func TestSettingsOfTheDatabase(t *testing.T) {
	server := pgtest.Start(t)
	under := func(door func() string, settings ...string) {
		t.Helper()
		db := pgtest.On(t, server.DSN())
		for _, setting := range settings {
			pgtest.Run(t, server.DSN(), "ALTER DATABASE postgres SET "+setting)
		}
		useAll(t, db, door())
		pgtest.Run(t, server.DSN(), "ALTER DATABASE postgres RESET ALL")
		same(t, "null where nothing was", db.Value(`SELECT count(*) FROM webhook_queue WHERE last_error = 'NULL' OR dead_reason = 'NULL'`), 0)
		same(t, "the name as others read it", db.Value(`SELECT endpoint_name FROM webhook_queue WHERE event_id = 'd'`), "caf\u00e9 \u2192")
		if t.Failed() {
			t.Fatalf("under %q", settings)
		}
	}
	for _, setting := range foreign {
		under(server.DSN, setting)
	}
	if pgtest.FindPooler() != "" {
		under(func() string { return server.Pooler(t) }, foreign...)
	}
}

// useAll writes and reads what can be misread.
func useAll(t *testing.T, db *pgtest.DB, dsn string) {
	s := open(t, db, func(c *pgstore.Config) { c.DSN, c.Labels = dsn, map[string]string{"service": "Caf\u00e9 \u2192"} })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	named := tried("d", 2, "dead_letter", 500, "http_500", time.Millisecond)
	named.EndpointName = "caf\u00e9 \u2192"
	write(t, s, delivered("a", 1), pending("p"), named)
	started := now.Add(-12 * time.Hour)
	for range 2 { // the second one reads what the first has written
		if _, err := s.Heartbeat(t.Context(), pgstore.Heartbeat{StartedAt: started, OldestPending: now}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.WriteHealth(t.Context(), []pgstore.Health{health("open", 3)}); err != nil {
		t.Fatal(err)
	}
	maintain(t, s, true)
	all, err := s.FleetInstances(t.Context())
	if err != nil || len(all) != 1 || !all[0].StartedAt.Equal(started) || all[0].Labels != "{\"service\": \"Caf\u00e9 \u2192\"}" {
		t.Errorf("instances %+v, %v", all, err)
	}
	list, err := s.FleetHealth(t.Context(), pgstore.HealthFilter{})
	if err != nil || len(list) != 1 || !list[0].OpenedAt.Equal(now) || *list[0].CooldownSeconds != 300.5 {
		t.Errorf("health %+v, %v", list, err)
	}
	var letter pgstore.DeadLetter
	err = s.FleetDeadLetters(t.Context(), pgstore.Letters{Since: time.Hour}, func(d pgstore.DeadLetter) bool { letter = d; return true })
	if err != nil || !letter.DeadAt.Equal(named.Attempt.EndedAt) || letter.EndpointName != named.EndpointName {
		t.Errorf("dead letter %+v, %v", letter, err)
	}
	if st, err := s.FleetStatus(t.Context()); err != nil || st.DeliveredLastHour != 1 {
		t.Errorf("status %+v, %v", st, err)
	}
	if left, err := s.Undelivered(t.Context(), pgstore.Undelivered{}, 10); err != nil || len(left) != 2 {
		t.Errorf("undelivered %+v, %v", left, err)
	}
}

// TestASerializableDatabase: instances that meet the same new endpoints do not fail each other's transactions.
func TestASerializableDatabase(t *testing.T) {
	server := pgtest.Start(t)
	pgtest.Run(t, server.DSN(), "ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'")
	db := pgtest.On(t, server.DSN())
	if err := open(t, db).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		s := open(t, db, instance(fmt.Sprintf("0190a6c0-7b2c-7def-8123-%012d", i)))
		wg.Go(func() {
			for n := range 20 {
				if err := s.Write(t.Context(), attemptsOf(fmt.Sprintf("https://partner-%d.example", n), 1, 2, 3)); err != nil {
					t.Errorf("instance %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	same(t, "events", db.Value(`SELECT count(*) FROM webhook_queue`), 8*20*3)
}
