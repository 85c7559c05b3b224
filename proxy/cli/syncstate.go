package cli

import (
	"encoding/json"
	"strings"
	"time"

	"postern/proxy/cli/term"
)

// syncState is the object sync of GET status.
type syncState struct {
	Enabled     bool      `json:"enabled"`
	Connected   bool      `json:"connected"`
	LagSeconds  float64   `json:"lag_seconds"`
	LastSuccess time.Time `json:"last_success"`
	Error       string    `json:"error"`
}

// readSync reads it; what cannot be read is as no sync.
func readSync(raw json.RawMessage) (st syncState) {
	if json.Unmarshal(raw, &st) != nil {
		return syncState{}
	}
	return st
}

// brief is one or two words about it.
func (st syncState) brief() part {
	switch {
	case !st.Enabled:
		return part{"sync", "off", ""}
	case !st.Connected && st.Error == "":
		return part{"sync", "connecting", ""}
	case !st.Connected:
		return part{"sync", "FAILING", term.Warn}
	}
	return part{"sync", term.Age(seconds(st.LagSeconds)) + " behind", ""}
}

// fact says the same, and of one that fails since when and why.
func (st syncState) fact(now time.Time) fact {
	p := st.brief()
	switch {
	case st.Connected:
		p.value = "connected, " + p.value
	case st.Error != "":
		last := ", never worked yet"
		if !st.LastSuccess.IsZero() {
			last = ", last worked " + term.When(st.LastSuccess, now)
		}
		if st.LagSeconds > 0 {
			last += ", rows wait for " + term.Age(seconds(st.LagSeconds))
		}
		p.value += last + ": " + strings.ReplaceAll(st.Error, "\n", " ")
	}
	return fact{name: p.label, value: p.value, color: p.color}
}
