package ingest

import (
	"encoding/hex"

	"github.com/google/uuid"
)

// newID makes an event ID: UUIDv7 (RFC 9562), so that IDs sort by time of acceptance, with a prefix that tells what
// it is the ID of.
func newID() string {
	// The system's random source does not fail: crypto/rand ends the process rather than give an error.
	u := uuid.Must(uuid.NewV7())
	buf := make([]byte, 0, 40)
	buf = append(buf, "evt_"...)
	for i, part := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			buf = append(buf, '-')
		}
		buf = hex.AppendEncode(buf, part)
	}
	return string(buf)
}
