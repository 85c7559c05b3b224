package main

import (
	"strings"
	"testing"

	"postern/sync/pgstore"
	"postern/sync/pgtest"
)

// A day that is made up has the answers that the measurement expects, and a question whose answer is another one is refused.
func TestDayAnswersItsQuestions(t *testing.T) {
	db := pgtest.New(t)
	store, err := pgstore.Open(t.Context(), pgstore.Config{DSN: db.DSN, Schema: db.Schema})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := pgtest.Dial(t.Context(), db.DSN, db.Schema)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	d := &database{dsn: db.DSN, schema: db.Schema, conn: conn}
	l := &lab{sizes: sizes{day: 210_000}}
	if err := d.fill(t.Context(), l.sizes.day); err != nil {
		t.Fatal(err)
	}
	for _, q := range l.questions() {
		if err := d.check(t.Context(), q); err != nil {
			t.Error(err)
		}
		if took, err := d.time(t.Context(), q.query); err != nil || took <= 0 {
			t.Errorf("%s: %v ms, %v", q.name, took, err)
		}
		if q.want = "7"; d.check(t.Context(), q) == nil {
			t.Errorf("%s: any answer is taken", q.name)
		}
	}
	if err := d.holds(t.Context(), l.sizes.day); err == nil || !strings.Contains(err.Error(), "in hours 210000") {
		t.Errorf("not all of them are delivered: %v", err)
	}
	if err := d.empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.holds(t.Context(), 1); err == nil {
		t.Error("nothing is taken for one event")
	}
}

func TestConfigurationsOfOneDatabase(t *testing.T) {
	d := &database{dsn: "postgres://u:p@h/db", schema: "bench_x"}
	if d.sync() != "sync: { dsn: \"postgres://u:p@h/db\", schema: bench_x }\n" || !strings.Contains(d.away(), "127.0.0.1:9") || !strings.Contains(d.away(), "schema: bench_x") {
		t.Errorf("%s%s", d.sync(), d.away())
	}
}
