package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"postern/sync/pgtest"
)

// queueSchema makes an empty schema in the tests' Postgres.
func queueSchema(t *testing.T) (*database, *pgtest.Conn) {
	t.Helper()
	db := pgtest.New(t)
	db.Exec("CREATE SCHEMA IF NOT EXISTS " + db.Schema)
	conn, err := pgtest.Dial(t.Context(), db.DSN, db.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return &database{dsn: db.DSN, schema: db.Schema}, conn
}

// The reference does what it is there for: every event is in the table before its 202, and reaches the receiver once.
func TestQueueDeliversEverything(t *testing.T) {
	d, conn := queueSchema(t)
	receiver := start(t, "receiver", nil)
	for _, batch := range []int{1, 10} {
		s, end, err := d.byQueue(batch)(t.Context(), receiver.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pass(t.Context(), receiver, s, loadSpec{Conns: 8, Body: 500, Want: 202, Count: 200})
		end() // workers end their transaction first
		if err != nil {
			t.Fatal(err)
		}
		rows, err := conn.Rows(t.Context(), "SELECT status, attempt_count, last_status_code, length(payload), count(*) FROM queue GROUP BY 1, 2, 3, 4")
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(rows); !strings.HasPrefix(got, "[[delivered 1 200 500 ") {
			t.Errorf("batches of %d: %s", batch, got)
		}
	}
}

// What the receiver refuses waits for its next attempt.
func TestQueueKeepsWhatFailed(t *testing.T) {
	d, conn := queueSchema(t)
	refusing := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	c := start(t, "queue", d.usualQueue(refusing, 10))
	if _, err := runLoad(t.Context(), loadSpec{Addr: c.addr, Path: "/x", Conns: 1, Body: 100, Want: 202, Count: 3}); err != nil {
		t.Fatal(err)
	}
	const waits = "SELECT count(*) FROM queue WHERE status = 'pending' AND attempt_count = 1 AND last_status_code = 503 AND next_attempt_at > now() + interval '20 seconds'"
	deadline := time.Now().Add(2 * time.Minute)
	for {
		rows, err := conn.Rows(t.Context(), waits)
		if err != nil {
			t.Fatal(err)
		}
		if rows[0][0] == "3" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s of 3 wait for their next attempt", rows[0][0])
		}
		time.Sleep(10 * time.Millisecond)
	}
}
