package admin_test

import (
	"errors"
	"strings"
	"testing"

	"postern/proxy/admin"
	"postern/spool"
)

// fakeRefused has rows that a central store refused.
type fakeRefused struct {
	rows []spool.RefusedRow
	fail error
	put  int
}

func (f *fakeRefused) Refused(limit int) ([]spool.RefusedRow, int, error) {
	return f.rows[:min(limit, len(f.rows))], len(f.rows), f.fail
}

func (f *fakeRefused) RetryRefused() (int, error) {
	if f.fail != nil {
		return 0, f.fail
	}
	f.put = len(f.rows)
	return f.put, nil
}

func someRefused() *fakeRefused {
	row := func(id string, state spool.State, attempt *spool.Attempt) spool.RefusedRow {
		return spool.RefusedRow{
			OutboxRow: spool.OutboxRow{EventID: id, Endpoint: "partner-a", State: state, Attempt: attempt, Deleted: state == 0},
			Cause:     "Postgres says: no (23514)", At: at(21, 30),
		}
	}
	return &fakeRefused{rows: []spool.RefusedRow{
		row("evt_teapot", spool.StateDeadLetter, &spool.Attempt{Number: 5, StatusCode: 418}), row("evt_gone", 0, nil),
	}}
}

func TestRefusedRows(t *testing.T) {
	f := someRefused()
	r := newRig(t, func(p *admin.Parts) { p.Refused = f })
	const first = `{"event_id":"evt_teapot","endpoint":"partner-a","state":"dead_letter","attempt":5,"cause":"Postgres says: no (23514)","refused_at":"1999-12-31T21:30:00Z"}`
	const second = `{"event_id":"evt_gone","endpoint":"partner-a","state":null,"attempt":null,"cause":"Postgres says: no (23514)","refused_at":"1999-12-31T21:30:00Z"}`
	r.want(r.do("GET", "/api/v1/sync/refused", ""), 200, `{"refused":[`+first+`,`+second+`],"total":2}`)
	r.want(r.do("GET", "/api/v1/sync/refused?limit=1", ""), 200, `{"refused":[`+first+`],"total":2}`)
	if f.put != 0 {
		t.Error("looking put rows back")
	}
	r.want(r.do("POST", "/api/v1/sync/retry", ""), 200, `{"retried":2}`)
	if f.put != 2 || !strings.Contains(r.log.String(), "put back by hand") || !strings.Contains(r.log.String(), "rows=2") {
		t.Errorf("%d put back, and the log says %s", f.put, r.log)
	}
}

func TestRefusedRowsThatCannotBeRead(t *testing.T) {
	f := someRefused()
	r := newRig(t, func(p *admin.Parts) { p.Refused = f })
	for err, status := range map[error]int{spool.ErrUnwritable: 503, spool.ErrClosed: 503, errors.New("odd"): 500} {
		f.fail = err
		r.refused(r.do("GET", "/api/v1/sync/refused", ""), status)
		r.refused(r.do("POST", "/api/v1/sync/retry", ""), status)
	}
	r.refused(r.do("GET", "/api/v1/sync/retry", ""), 405)
	r.refused(r.do("POST", "/api/v1/sync/retry?all=1", ""), 400)
	r.refused(r.do("GET", "/api/v1/sync/refused?limit=0", ""), 400, "limit")
	r.refused(r.do("GET", "/api/v1/sync/refused?since=1h", ""), 400, "limit")
}

func TestWithoutSyncNothingIsPutBack(t *testing.T) {
	r := newRig(t)
	r.want(r.do("GET", "/api/v1/sync/refused", ""), 200, `{"refused":[],"total":0}`)
	r.refused(r.do("POST", "/api/v1/sync/retry", ""), 409, "sync.dsn")
}
