package spool

import (
	"fmt"
	"time"

	"postern/spool/internal/layout"
)

// endpointRow is what the spool knows about one endpoint. The number stands for the name in due keys and summaries.
type endpointRow struct {
	id                          uint32
	pending, failed, dead, done int64
	bytes                       int64
	usedAt                      time.Time // to the minute; an unused row goes after a while
}

// live tells that something in the spool refers to the row.
func (r *endpointRow) live() bool { return r.pending+r.failed+r.dead+r.done > 0 }

func encodeEndpoint(r *endpointRow) []byte {
	e := layout.NewEncoder(nil, layout.KindEndpoint)
	e.Uint(uint64(r.id))
	for _, n := range []int64{r.pending, r.failed, r.dead, r.done, r.bytes} {
		e.Int(n)
	}
	e.Time(r.usedAt)
	return e.Record()
}

func decodeEndpoint(rec []byte) (*endpointRow, error) {
	fields, err := layout.Fields(layout.KindEndpoint, rec)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	d := layout.NewDecoder(string(fields))
	r := &endpointRow{id: uint32(d.Uint())}
	for _, n := range []*int64{&r.pending, &r.failed, &r.dead, &r.done, &r.bytes} {
		*n = d.Int()
	}
	r.usedAt = d.Time()
	return r, d.Err()
}

// counters are the spool's own numbers, written with every commit that moves one of them.
type counters struct {
	nextSeq        uint64 // of the next event; starts at 1
	nextEndpoint   uint32
	nextOutbox     uint64 // index of the next row; starts at 1
	doneBytes      int64
	outboxRows     int64
	outboxBytes    int64
	historyDropped int64
	idemBytes      int64
	setAside       int64
	salvageLost    int64
	lastSeen       time.Time // the latest wall-clock time; absent from the records of the first versions
}

func (c *counters) fields() []*int64 {
	return []*int64{&c.doneBytes, &c.outboxRows, &c.outboxBytes, &c.historyDropped, &c.idemBytes, &c.setAside, &c.salvageLost}
}

func encodeCounters(c *counters) []byte {
	e := layout.NewEncoder(nil, layout.KindCounters)
	e.Uint(c.nextSeq)
	e.Uint(uint64(c.nextEndpoint))
	e.Uint(c.nextOutbox)
	for _, n := range c.fields() {
		e.Int(*n)
	}
	e.Time(c.lastSeen)
	return e.Record()
}

func decodeCounters(rec []byte) (counters, error) {
	fields, err := layout.Fields(layout.KindCounters, rec)
	if err != nil {
		return counters{}, fmt.Errorf("counters: %w", err)
	}
	d := layout.NewDecoder(string(fields))
	var c counters
	c.nextSeq = d.Uint()
	c.nextEndpoint = uint32(d.Uint())
	c.nextOutbox = d.Uint()
	for _, n := range c.fields() {
		*n = d.Int()
	}
	if d.More() {
		c.lastSeen = d.Time()
	}
	return c, d.Err()
}

func encodeMinute(h HourStats) []byte {
	e := layout.NewEncoder(nil, layout.KindMinute)
	e.Int(h.Delivered)
	e.Int(h.Failed)
	e.Int(int64(h.Duration))
	return e.Record()
}

func decodeMinute(rec []byte) (HourStats, error) {
	fields, err := layout.Fields(layout.KindMinute, rec)
	if err != nil {
		return HourStats{}, fmt.Errorf("minute: %w", err)
	}
	d := layout.NewDecoder(string(fields))
	h := HourStats{Delivered: d.Int(), Failed: d.Int(), Duration: time.Duration(d.Int())}
	return h, d.Err()
}

// idemEntry is what is remembered of a key within the dedupe window.
type idemEntry struct {
	id          string
	endpoint    string
	fingerprint []byte
	at          time.Time
}

func encodeIdem(i *idemEntry) []byte {
	e := layout.NewEncoder(make([]byte, 0, 96), layout.KindIdem)
	e.Bytes(layout.PackID(i.id))
	e.String(i.endpoint)
	e.Bytes(i.fingerprint)
	e.Time(i.at)
	return e.Record()
}

func decodeIdem(rec []byte) (*idemEntry, error) {
	fields, err := layout.Fields(layout.KindIdem, rec)
	if err != nil {
		return nil, fmt.Errorf("idempotency key: %w", err)
	}
	d := layout.NewDecoder(string(fields))
	id, ok := layout.UnpackID([]byte(d.String()))
	i := &idemEntry{id: id, endpoint: d.String(), fingerprint: d.Bytes(), at: d.Time()}
	if err := d.Err(); err != nil || !ok {
		return nil, fmt.Errorf("idempotency key: %w", layout.ErrCorrupt)
	}
	return i, nil
}

// sealText frames text or opaque bytes.
func sealText[T string | []byte](kind layout.Kind, v T) []byte {
	e := layout.NewEncoder(nil, kind)
	e.Raw([]byte(v))
	return e.Record()
}
