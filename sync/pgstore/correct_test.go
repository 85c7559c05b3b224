package pgstore_test

import (
	"testing"
	"time"

	"postern/sync/pgstore"
)

func TestCorrect(t *testing.T) {
	s, db := migrated(t)
	b := open(t, db, instance(instanceB))
	write(t, b, pending("a"))
	write(t, s, pending("a"), tried("b", 1, "failed", 500, "http_500", 1), pending("c"), pending("d"), delivered("e", 1), tried("f", 1, "dead_letter", 404, "http_404", 1))
	list := must[[]pgstore.Undelivered](t)(s.Undelivered(t.Context(), pgstore.Undelivered{}, 3))
	if len(list) != 3 || list[0].EventID != "a" || list[1].EventID != "b" || list[1].Version != 2 || !list[0].CreatedAt.Equal(now.Add(-time.Minute)) {
		t.Fatalf("unfinished: %+v", list)
	}
	rest := must[[]pgstore.Undelivered](t)(s.Undelivered(t.Context(), list[2], 3))
	if len(rest) != 2 || rest[0].EventID != "d" || rest[0].Status != "pending" || rest[1].EventID != "f" || rest[1].Status != "dead_letter" {
		t.Fatalf("behind them: %+v", rest)
	}

	known := delivered("a", 7*time.Millisecond)
	known.Version = 1 // the one that is stored
	gone := pending("b")
	gone.Version, gone.Status = 2, ""
	given := pending("c")
	given.Status, given.DeadReason = "dead_letter", "expired"
	stale := delivered("d", 1)
	stale.Version = 1
	later := tried("d", 1, "failed", 503, "http_503", 1)
	write(t, s, later) // arrives before the correction
	if err := s.Correct(t.Context(), []pgstore.Row{known, gone, given, stale}); err != nil {
		t.Fatal(err)
	}
	same(t, "corrected", db.Rows(`SELECT event_id, status, version, dead_reason, last_status_code, delivered_at IS NOT NULL, dead_at IS NOT NULL FROM webhook_queue WHERE instance_id = '`+instanceA+`' ORDER BY 1`),
		"[[a delivered 1 null 200 t f] [c dead_letter 1 expired null f t] [d failed 2 null 503 f f] [e delivered 2 null 200 t f] [f dead_letter 2 exhausted 404 f t]]")
	same(t, "the other instance's", db.Rows(`SELECT status FROM webhook_queue WHERE instance_id = '`+instanceB+`'`), "[[pending]]")
	same(t, "attempts", db.Value(`SELECT count(*) FROM endpoint_latency`), 4)
	write(t, s, tried("a", 2, "delivered", 204, "", time.Millisecond)) // what was under way after all
	same(t, "the real row", db.Rows(`SELECT last_status_code, version FROM webhook_queue WHERE event_id = 'a' AND instance_id = '`+instanceA+`'`), "[[204 3]]")
}

func TestUnknown(t *testing.T) {
	s, db := migrated(t)
	write(t, open(t, db, instance(instanceB)), pending("new"))
	gone := pending("gone")
	gone.Version, gone.Status = 7, ""
	write(t, s, tried("same", 1, "failed", 500, "http_500", 1), pending("older"), gone)
	again := pending("same") // the ID was used again
	again.CreatedAt = again.CreatedAt.Add(time.Second)
	lapsed := pending("lapsed")
	lapsed.Status, lapsed.DeadReason, lapsed.DeadAt = "dead_letter", "expired", now.Add(-48*time.Hour)
	rows := []pgstore.Row{tried("same", 1, "failed", 500, "http_500", 1), pending("new"), tried("older", 1, "failed", 500, "http_500", 1), pending("gone"), again, lapsed}
	places := must[[]int](t)(s.Unknown(t.Context(), rows))
	same(t, "unknown", places, "[1 2 4 5]")
	for _, i := range places {
		write(t, s, rows[i])
	}
	same(t, "unknown then", must[[]int](t)(s.Unknown(t.Context(), rows)), "[]")
	same(t, "given up when it was", db.Value(`SELECT dead_at = '`+lapsed.DeadAt.Format(time.RFC3339)+`' FROM webhook_queue WHERE event_id = 'lapsed'`), "t")
}
