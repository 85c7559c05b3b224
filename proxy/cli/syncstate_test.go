package cli

import (
	"encoding/json"
	"testing"
)

// TestSyncIsTold: status says of a sync that fails since when and why; top has room for a word.
func TestSyncIsTold(t *testing.T) {
	for raw, want := range map[string][2]string{
		`{"enabled":false}`: {"off", "off"},
		`null`:              {"off", "off"},
		``:                  {"off", "off"},
		`{"enabled":true,"connected":true,"lag_seconds":3.4,"last_success":"2026-03-04T11:59:59Z","error":null}`:                                   {"3s behind", "connected, 3s behind"},
		`{"enabled":true,"connected":false,"lag_seconds":0,"last_success":null,"error":null}`:                                                      {"connecting", "connecting"},
		`{"enabled":true,"connected":false,"lag_seconds":0,"last_success":null,"error":"Postgres cannot be reached"}`:                              {"FAILING", "FAILING, never worked yet: Postgres cannot be reached"},
		`{"enabled":true,"connected":false,"lag_seconds":610,"last_success":"2026-03-04T11:50:00Z","error":"Postgres cannot be reached: refused"}`: {"FAILING", "FAILING, last worked 11:50:00 (10m ago), rows wait for 10m: Postgres cannot be reached: refused"},
	} {
		st := readSync(json.RawMessage(raw))
		if brief, fact := st.brief().value, st.fact(noon).value; brief != want[0] || fact != want[1] {
			t.Errorf("%s: %q and %q, want %q", raw, brief, fact, want)
		}
	}
}
