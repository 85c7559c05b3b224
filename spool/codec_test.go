package spool

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

var testRing, _ = keyring.New([]byte("0123456789abcdef0123456789abcdef"))

func drawTime(t *rapid.T, name string) time.Time {
	us := rapid.Int64Range(0, 1<<52).Draw(t, name)
	return layout.FromMicros(uint64(us))
}

func drawHistory(t *rapid.T) (history []Attempt) {
	for i := range rapid.IntRange(0, 22).Draw(t, "attempts") {
		history = append(history, Attempt{
			Number: i + 1, StartedAt: drawTime(t, "started"),
			Duration:   time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "us")) * time.Microsecond,
			StatusCode: rapid.IntRange(0, 599).Draw(t, "status"),
			Error:      rapid.SampledFrom([]string{"", "timeout", "http_503"}).Draw(t, "error"),
		})
	}
	return history
}

func drawProgress(t *rapid.T) progress {
	p := progress{version: rapid.Uint64().Draw(t, "version")}
	p.Attempts = rapid.IntRange(0, 1000).Draw(t, "attempts")
	p.Charged = rapid.IntRange(0, 1000).Draw(t, "charged")
	p.Since, p.NextAttempt, p.DeadAt = drawTime(t, "since"), drawTime(t, "next"), drawTime(t, "dead")
	p.DeadReason = rapid.SampledFrom([]string{"", ReasonGone}).Draw(t, "reason")
	p.History = drawHistory(t)
	if rapid.Bool().Draw(t, "answered") {
		p.Answer = &Answer{StatusCode: 302, Location: rapid.String().Draw(t, "location"), Body: drawBytes(t, "answer")}
	}
	return p
}

func drawBytes(t *rapid.T, name string) []byte {
	if b := rapid.SliceOf(rapid.Byte()).Draw(t, name); len(b) > 0 {
		return b
	}
	return nil
}

func drawEvent(t *rapid.T) *Event {
	ev := &Event{
		Seq: rapid.Uint64().Draw(t, "seq"), ID: rapid.StringMatching(`[A-Za-z0-9._:-]{1,128}`).Draw(t, "id"),
		ExplicitID: rapid.Bool().Draw(t, "explicit"), Endpoint: rapid.StringN(1, 60, 200).Draw(t, "endpoint"),
		Named: rapid.Bool().Draw(t, "named"), Target: rapid.String().Draw(t, "target"),
		Method: rapid.StringMatching(`[A-Z]{1,12}`).Draw(t, "method"), Body: drawBytes(t, "body"),
		AcceptedAt: drawTime(t, "accepted"), NotBefore: drawTime(t, "notBefore"),
		TTL: time.Duration(rapid.Int64().Draw(t, "ttl")), MaxAttempts: rapid.IntRange(0, 100).Draw(t, "max"),
		Timeout: time.Duration(rapid.Int64().Draw(t, "timeout")),
	}
	for range rapid.IntRange(0, 5).Draw(t, "headers") {
		ev.Headers = append(ev.Headers, Header{rapid.String().Draw(t, "name"), rapid.String().Draw(t, "value")})
	}
	return ev
}

// TestRecordsComeBack: whatever is written comes back as it was.
func TestRecordsComeBack(t *testing.T) {
	same := func(t *rapid.T, got, want any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v (%v), want %+v", got, err, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		ev := drawEvent(t)
		ring := rapid.SampledFrom([]*keyring.Ring{nil, testRing}).Draw(t, "ring")
		got, size, err := decodeEvent(ev.Seq, encodeEvent(ev, ring), eventPayload, ring)
		same(t, got, ev, err)
		if size != int64(len(ev.Body)) {
			t.Fatalf("size %d of %d", size, len(ev.Body))
		}
		p := drawProgress(t)
		if sealed := p; p.Answer != nil {
			sealed.setAnswer(1, p.Answer, ring)
			back, err := decodeProgress(1, encodeProgress(&sealed))
			if err == nil {
				err = back.openAnswer(1, ring)
			}
			same(t, back, p, err)
		}
		gotP, err := decodeProgress(1, encodeProgress(&p))
		same(t, gotP, p, err)

		head := *ev
		head.Headers, head.Body = nil, nil
		dl := &deadLetter{event: head, size: size, progress: p}
		gotD, err := decodeDead(ev.Seq, encodeDead(dl))
		same(t, gotD, dl, err)

		sum := &summary{
			id: ev.ID, explicit: ev.ExplicitID, endpoint: 7, named: ev.Named, method: ev.Method, acceptedAt: ev.AcceptedAt,
			deliveredAt: ev.AcceptedAt.Add(5 * time.Millisecond), size: size, attempts: p.Attempts, charged: p.Charged,
			fingerprint: drawBytes(t, "print"), history: p.History,
		}
		gotS, err := decodeSummary(1, encodeSummary(sum))
		same(t, gotS, sum, err)
		at, err := summaryTime(1, encodeSummary(sum))
		same(t, at, sum.deliveredAt, err)

		row := OutboxRow{
			Index: 3, EventID: ev.ID, Version: p.version, Endpoint: ev.Endpoint, Named: ev.Named, Target: ev.Target,
			State: StateFailed, Attempts: p.Attempts, MaxAttempts: ev.MaxAttempts, AcceptedAt: ev.AcceptedAt,
			NextAttempt: p.NextAttempt, DeliveredAt: p.DeadAt, DeadReason: p.DeadReason,
		}
		if len(p.History) > 0 {
			row.Attempt = &p.History[0]
		}
		gotR, err := decodeOutboxRow(3, encodeOutboxRow(&row, ring), ring)
		same(t, gotR, row, err)
	})
}

func TestSummaryIsSmall(t *testing.T) {
	now := time.Now()
	rec := encodeSummary(&summary{
		id: "evt_0190a6c0-7b2c-7def-8123-456789abcdef", endpoint: 300, method: "POST", acceptedAt: now,
		deliveredAt: now.Add(time.Second), size: 2000, attempts: 1, charged: 1,
		history: []Attempt{{Number: 1, StartedAt: now, Duration: 50 * time.Millisecond, StatusCode: 200}},
	})
	if len(rec) > 80 {
		t.Errorf("the summary of a delivered event has %d bytes", len(rec))
	}
}

func TestHistoryKeepsFirstAndLast(t *testing.T) {
	var history []Attempt
	for i := range 100 {
		history = withAttempt(history, Attempt{Number: i + 1})
	}
	if len(history) != 21 || history[0].Number != 1 || history[1].Number != 81 || history[20].Number != 100 {
		t.Errorf("kept: %+v", history)
	}
}

// FuzzRecords: no record makes a decoder panic or believe it, whatever its bytes, even where the checksum is right.
func FuzzRecords(f *testing.F) {
	f.Add(uint8(layout.KindEvent), []byte("\x05hello"))
	f.Add(uint8(layout.KindProgress), encodeProgress(&progress{version: 1})[7:])
	f.Fuzz(func(t *testing.T, kind uint8, fields []byte) {
		e := layout.NewEncoder(nil, layout.Kind(kind))
		e.Raw(fields)
		if kind&0x80 != 0 {
			e = layout.NewEncoder(nil, layout.Kind(kind&0x7f))
			e.Seal()
			e.Raw(fields)
		}
		rec := e.Record()
		for name, err := range decodeAll(rec) {
			if err != nil && !errors.Is(err, layout.ErrCorrupt) && !errors.Is(err, keyring.ErrUnknownKey) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func decodeAll(rec []byte) map[string]error {
	errs := make(map[string]error)
	_, _, errs["event"] = decodeEvent(1, rec, eventPayload, testRing)
	_, errs["progress"] = decodeProgress(1, rec)
	_, errs["dead"] = decodeDead(1, rec)
	_, errs["summary"] = decodeSummary(1, rec)
	_, errs["outbox"] = decodeOutboxRow(1, rec, testRing)
	_, errs["refused"] = decodeRefused(1, rec, testRing)
	_, errs["keys"] = decodeKeys(rec)
	_, errs["blind"] = decodeBlind(rec, testRing)
	_, errs["endpoint"] = decodeEndpoint(rec)
	_, errs["counters"] = decodeCounters(rec)
	_, errs["minute"] = decodeMinute(rec)
	_, errs["idem"] = decodeIdem(rec)
	return errs
}

func TestListedTarget(t *testing.T) {
	for _, tt := range []struct {
		named        bool
		target, want string
	}{
		{false, "https://a.example/pb?cid=1", "https://a.example"}, {false, "https://a.example?cid=1", "https://a.example"},
		{false, "http://[::1]:80/", "http://[::1]:80"}, {false, "https://a.example", "https://a.example"}, {false, "", ""},
		{false, "https://u:p@a.example/x@y?z", "https://a.example"}, {false, "http://u:p@@[::1]:80", "http://[::1]:80"}, {false, "a@b", ""},
		{true, "/extra?u=http://x/", "/extra"}, {true, "", ""}, {true, "/a/b", "/a/b"}, {true, "?cid=1", ""},
	} {
		if got := listedTarget(&Event{Named: tt.named, Target: tt.target}); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.target, got, tt.want)
		}
	}
}
