package pgstore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"postern/sync/pgstore"
)

const queueRow = `SELECT status, attempt_count, max_attempts, last_error, last_status_code, last_response_ms, dead_reason,
	delivered_at IS NOT NULL, dead_at IS NOT NULL, next_attempt_at IS NOT NULL, version FROM webhook_queue WHERE event_id = '%s'`

func TestOneEventThroughItsLife(t *testing.T) {
	s, db := migrated(t)
	retry := tried("a", 1, "failed", 503, "http_503", 12*time.Millisecond)
	replayed := pending("a")
	replayed.Version, replayed.Status, replayed.Attempts = 4, "failed", 2
	for _, step := range []struct {
		row  pgstore.Row
		want string
	}{
		{pending("a"), "[pending 0 5 null null null null f f t 1]"},
		{retry, "[failed 1 5 http_503 503 12 null f f t 2]"},
		{tried("a", 2, "dead_letter", 0, "connect", time.Second), "[dead_letter 2 5 connect null null exhausted f t f 3]"},
		{replayed, "[failed 2 5 connect null null null f f t 4]"}, // the last attempt is still that one
		{tried("a", 4, "delivered", 204, "", 7*time.Millisecond), "[delivered 4 5 null 204 7 null t f f 5]"},
	} {
		write(t, s, step.row)
		same(t, "state", db.Rows(fmt.Sprintf(queueRow, "a"))[0], step.want)
	}
	same(t, "attempts", db.Rows(`SELECT attempt, status_code, error, response_ms FROM endpoint_latency ORDER BY attempt`),
		"[[1 503 http_503 12] [2 null connect null] [4 204 null 7]]")
}

// TestAnyOrderAndAnyNumberOfTimes sends the same history whole, in pieces, backwards and twice: the tables are the same.
func TestAnyOrderAndAnyNumberOfTimes(t *testing.T) {
	gone := pending("gone")
	gone.Version, gone.Status = 3, ""
	history := []pgstore.Row{
		pending("a"), tried("a", 1, "failed", 500, "http_500", 30*time.Millisecond), tried("a", 2, "delivered", 200, "", 40*time.Millisecond),
		pending("b"), tried("b", 1, "dead_letter", 410, "http_410", time.Millisecond),
		pending("gone"), tried("gone", 1, "failed", 0, "timeout", 15*time.Second), gone,
		pending("c"),
	}
	backwards := slices.Clone(history)
	slices.Reverse(backwards)
	var want [][]string
	for name, batches := range map[string][][]pgstore.Row{
		"whole":         {history},
		"one by one":    slices.Collect(slices.Chunk(history, 1)),
		"twice":         {history, history},
		"each twice":    append(slices.Collect(slices.Chunk(history, 1)), slices.Collect(slices.Chunk(history, 1))...),
		"backwards":     {backwards},
		"back, in twos": slices.Collect(slices.Chunk(backwards, 2)),
	} {
		t.Run(name, func(t *testing.T) {
			s, db := migrated(t)
			for _, batch := range batches {
				write(t, s, batch...)
			}
			got := db.Rows(`SELECT event_id, status, attempt_count::text, last_error, last_status_code::text, last_response_ms::text, version::text FROM webhook_queue
				UNION ALL SELECT event_id, attempt::text, error, status_code::text, response_ms::text, '', '' FROM endpoint_latency
				UNION ALL SELECT 'counts', attempts::text, delivered::text, delivered_ms::text, buckets::text, counts::text, '' FROM endpoint_hours
				UNION ALL SELECT 'counts', sum(attempts)::text, sum(delivered)::text, sum(delivered_ms)::text, '', '', '' FROM endpoint_minutes ORDER BY 1, 2, 3`)
			if want == nil {
				want = got
				same(t, "events", len(got), 9)
			}
			same(t, "tables", got, want)
		})
	}
}

func TestInstancesMayShareAnEventID(t *testing.T) {
	a, db := migrated(t)
	b := open(t, db, instance(instanceB))
	write(t, a, delivered("same", 5*time.Millisecond))
	write(t, b, tried("same", 1, "failed", 500, "http_500", 5*time.Millisecond))
	same(t, "events", db.Rows(`SELECT instance_id, status FROM webhook_queue ORDER BY 1`),
		[][]string{{instanceA, "delivered"}, {instanceB, "failed"}})
	same(t, "one endpoint", db.Value(`SELECT count(DISTINCT endpoint_id) FROM endpoint_latency`), 1)
}

// TestAnEventIDUsedAgain: once its trace has left the spool, an application may use an ID again, with versions from 1 on.
func TestAnEventIDUsedAgain(t *testing.T) {
	s, db := migrated(t)
	write(t, s, tried("a", 3, "delivered", 200, "", 1))
	again := pending("a")
	again.CreatedAt = now
	write(t, s, again)
	same(t, "rows", db.Rows(`SELECT status FROM webhook_queue WHERE event_id = 'a' ORDER BY created_at`), "[[delivered] [pending]]")
}

func TestDeletedStaysDeleted(t *testing.T) {
	s, db := migrated(t)
	gone := pending("a")
	gone.Version, gone.Status = 3, ""
	write(t, s, tried("a", 1, "failed", 500, "http_500", 1))
	write(t, s, gone)
	write(t, s, tried("a", 1, "failed", 500, "http_500", 1)) // sent again, late
	same(t, "events", db.Value(`SELECT count(*) FROM webhook_queue`), 0)
	same(t, "attempts", db.Value(`SELECT count(*) FROM endpoint_latency`), 1)
}

func TestWhatPostgresWouldRefuse(t *testing.T) {
	s, db := migrated(t)
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	long := string(make([]byte, 5000))
	odd := tried("nul\x00bad\xff", 1, "dead_letter", 500, "http_500\x00\xfe", time.Millisecond)
	odd.EndpointName, odd.EndpointURL, odd.DeadReason = "n\x00\xff", "https://h\x00\xff.example", "x\x00"
	big := tried("big", 1, "failed", 1<<40, "class", 1<<62)
	big.Attempts, big.MaxAttempts, big.Version = 1<<40, -1, 1<<63+5
	big.NextAttempt, big.DeliveredAt, big.CreatedAt = far, far.AddDate(7000, 0, 0), time.Time{}
	big.Attempt.Number = 1 << 40
	wide := delivered(long, 1)
	wide.EndpointURL, wide.EndpointName, wide.DeadReason = "https://"+long, long, long
	other := delivered(long+"x", 1)
	unknown := tried("unknown", 1, "sleeping", 500, "http_500", 1)
	write(t, s, odd, big, wide, other, unknown)
	write(t, s, odd, big, wide, other)
	same(t, "events", db.Value(`SELECT count(*) FROM webhook_queue`), 4)
	same(t, "deleted", db.Value(`SELECT count(*) FROM deleted_events`), 0)
	same(t, "attempts", db.Value(`SELECT count(*) FROM endpoint_latency`), 5)
	same(t, "odd", db.Rows(`SELECT endpoint_url, last_error, dead_reason FROM webhook_queue WHERE event_id LIKE 'nul%'`), "[[https://h\uFFFD\uFFFD.example http_500\uFFFD\uFFFD x\uFFFD]]")
	same(t, "big", db.Rows(`SELECT attempt_count, max_attempts, last_status_code, last_response_ms, created_at, next_attempt_at FROM webhook_queue WHERE event_id = 'big'`),
		"[[2147483647 0 2147483647 2147483647 1970-01-01 00:00:00+00 2200-01-01 00:00:00+00]]")
}

func TestPayloads(t *testing.T) {
	s, db := migrated(t, func(c *pgstore.Config) { c.KeepBodies = true })
	for i, tc := range []struct{ body, want string }{
		{`{"b":1,"a":[1.50, "x"]}`, `{"a": [1.50, "x"], "b": 1}`},
		{`"plain"`, `"plain"`},
		{``, `{"base64": ""}`},
		{`a=1&b=2`, `{"base64": "YT0xJmI9Mg=="}`},
		{"\xff\xfe\x00", `{"base64": "//4A"}`},
		{`{"a":"\u0000"}`, `{"base64": "eyJhIjoiXHUwMDAwIn0="}`},
		{`"\ud800"`, `{"base64": "Ilx1ZDgwMCI="}`},
		{`1e999999`, `{"base64": "MWU5OTk5OTk="}`},
	} {
		r := pending(fmt.Sprint("e", i))
		r.Payload = []byte(tc.body)
		write(t, s, r)
		later := tried(r.EventID, 1, "failed", 500, "http_500", 1)
		write(t, s, later) // comes without a payload, and takes none away
		same(t, tc.body, db.Value(`SELECT payload FROM webhook_queue WHERE event_id = '`+r.EventID+`'`), tc.want)
	}
	deep := pending("deep")
	for range 20000 {
		deep.Payload = append(deep.Payload, '[')
	}
	for range 20000 {
		deep.Payload = append(deep.Payload, ']')
	}
	write(t, s, deep, pending("none"))
	same(t, "without", db.Value(`SELECT payload IS NULL FROM webhook_queue WHERE event_id = 'none'`), "t")
}

// TestABodyGoesWithItsState: a dead letter's body is not kept once the event is no dead letter any more, whether both states
// come in one batch or not, and neither is one from a time in which all bodies were.
func TestABodyGoesWithItsState(t *testing.T) {
	s, db := migrated(t)
	given := tried("a", 1, "dead_letter", 503, "http_503", 1)
	given.Payload = []byte(`{"n":1}`)
	again := tried("a", 2, "failed", 503, "http_503", 1)
	const q = `SELECT status, payload FROM webhook_queue ORDER BY event_id`
	write(t, s, given)
	same(t, "a dead letter", db.Rows(q), `[[dead_letter {"n": 1}]]`)
	write(t, s, given, again)
	same(t, "sent again", db.Rows(q), "[[failed null]]")
	dead := tried("a", 3, "dead_letter", 503, "http_503", 1)
	dead.Payload = given.Payload
	write(t, s, again, dead)
	same(t, "given up again", db.Rows(q), `[[dead_letter {"n": 1}]]`)
	won := delivered("a", 1)
	won.Version = dead.Version
	if err := s.Correct(t.Context(), []pgstore.Row{won}); err != nil {
		t.Fatal(err)
	}
	same(t, "delivered, as it turned out", db.Rows(q), "[[delivered null]]")
	lapsed := pending("b")
	write(t, s, lapsed)
	lapsed.Status, lapsed.DeadReason, lapsed.Payload = "dead_letter", "expired", given.Payload
	if err := s.Correct(t.Context(), []pgstore.Row{lapsed}); err != nil {
		t.Fatal(err)
	}
	same(t, "given up, as it turned out", db.Rows(q), `[[delivered null] [dead_letter {"n": 1}]]`)
}

func TestEndpointsHaveOneNumber(t *testing.T) {
	a, db := migrated(t)
	b := open(t, db, instance(instanceB))
	named := delivered("n", 1)
	named.EndpointName, named.EndpointURL = "partner-a", "https://partner.example/postback"
	twin := delivered("t", 1)
	twin.EndpointName, twin.EndpointURL = "partner-b", named.EndpointURL
	write(t, a, named)
	write(t, a, twin) // the URL is known, the name is not
	write(t, b, named, delivered("x", 1))
	same(t, "endpoints", db.Rows(`SELECT endpoint_url FROM endpoints ORDER BY endpoint_id`), "[[https://partner.example/postback] [https://partner.example]]")
	same(t, "names", db.Rows(`SELECT endpoint_name, endpoint_id FROM endpoint_names ORDER BY 1`), "[[partner-a 1] [partner-b 1]]")
}

// TestTheSchemaIsMadeAnew beside a store that remembers numbers of the old one.
func TestTheSchemaIsMadeAnew(t *testing.T) {
	s, db := migrated(t)
	other := delivered("o", 1)
	other.EndpointName, other.EndpointURL = "https://other.example", "https://other.example"
	write(t, s, other)
	write(t, s, delivered("a", 1))
	operator := open(t, db)
	if err := errors.Join(operator.MigrateDown(t.Context(), 100), operator.Migrate(t.Context())); err != nil {
		t.Fatal(err)
	}
	err := s.Write(t.Context(), []pgstore.Row{delivered("b", 1)})
	if err != nil && pgstore.Classify(err) == pgstore.KindData {
		t.Errorf("kind %v of %v", pgstore.Classify(err), err)
	}
	write(t, s, delivered("b", 1))
	report(t, s, health("open", 1))
	same(t, "numbers agree", db.Rows(`SELECT e.endpoint_url, count(*) FROM webhook_queue q JOIN endpoints e USING (endpoint_id, endpoint_url) GROUP BY 1`), "[[https://partner.example 1]]")
	same(t, "health too", db.Rows(`SELECT endpoint_url, state FROM endpoint_health`), "[[https://partner.example open]]")
}

func TestPoisonIsTold(t *testing.T) {
	s, db := migrated(t)
	db.Exec(`ALTER TABLE endpoint_latency ADD CONSTRAINT no_teapots CHECK (status_code <> 418)`)
	err := s.Write(t.Context(), []pgstore.Row{delivered("a", 1), tried("b", 1, "dead_letter", 418, "http_418", 1)})
	if pgstore.Classify(err) != pgstore.KindData {
		t.Errorf("kind %v of %v", pgstore.Classify(err), err)
	}
	same(t, "rows", db.Value(`SELECT count(*) FROM webhook_queue`), 0) // whole or not at all
	write(t, s, delivered("a", 1))
	same(t, "rows", db.Value(`SELECT count(*) FROM webhook_queue`), 1)
}
