package spool

import (
	"fmt"
	"strings"
	"time"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// deadLetter is what lists of dead letters read: everything about the event but headers and body, and of its target what
// listedTarget leaves.
type deadLetter struct {
	event Event
	size  int64
	progress
}

// listedTarget is what of the target lists need: no query, and of an absolute URL the origin, without user info: this stays
// readable where the spool is encrypted. Targets of postbacks are long, and a full spool has no room for all of them twice.
func listedTarget(ev *Event) string {
	if ev.Named {
		path, _, _ := strings.Cut(ev.Target, "?")
		return path
	}
	scheme, rest, absolute := strings.Cut(ev.Target, "://")
	if !absolute {
		return ""
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

func encodeDead(dl *deadLetter) []byte {
	e := layout.NewEncoder(nil, layout.KindDead)
	putHead(&e, &dl.event)
	e.Uint(uint64(dl.size))
	putProgress(&e, &dl.progress)
	return e.Record()
}

func decodeDead(seq uint64, rec []byte) (*deadLetter, error) {
	fields, err := layout.Fields(layout.KindDead, rec)
	if err != nil {
		return nil, fmt.Errorf("dead letter %d: %w", seq, err)
	}
	d := layout.NewDecoder(string(fields))
	dl := &deadLetter{event: getHead(d)}
	dl.event.Seq = seq
	dl.size = int64(d.Uint())
	dl.progress = getProgress(d)
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("dead letter %d: %w", seq, err)
	}
	return dl, nil
}

func putHead(e *layout.Encoder, ev *Event) {
	e.String(ev.ID)
	e.Bool(ev.ExplicitID)
	e.String(ev.Endpoint)
	e.Bool(ev.Named)
	e.String(ev.Method)
	e.String(ev.Target)
	e.Time(ev.AcceptedAt)
	e.Time(ev.NotBefore)
	e.Int(int64(ev.TTL))
	e.Int(int64(ev.MaxAttempts))
	e.Int(int64(ev.Timeout))
}

func getHead(d *layout.Decoder) (ev Event) {
	ev.ID = d.String()
	ev.ExplicitID = d.Bool()
	ev.Endpoint = d.String()
	ev.Named = d.Bool()
	ev.Method = d.String()
	ev.Target = d.String()
	ev.AcceptedAt = d.Time()
	ev.NotBefore = d.Time()
	ev.TTL = time.Duration(d.Int())
	ev.MaxAttempts = int(d.Int())
	ev.Timeout = time.Duration(d.Int())
	return ev
}

// summary is what stays of a delivered event, about 70 bytes: the endpoint is a number, and the target is gone.
type summary struct {
	id          string
	explicit    bool
	endpoint    uint32
	named       bool
	method      string
	acceptedAt  time.Time
	deliveredAt time.Time
	size        int64
	attempts    int
	charged     int
	fingerprint []byte // of an event whose ID the application chose; else empty
	history     []Attempt
}

func encodeSummary(s *summary) []byte {
	e := layout.NewEncoder(make([]byte, 0, 80), layout.KindDone)
	e.Bytes(layout.PackID(s.id))
	e.Bool(s.explicit)
	e.Uint(uint64(s.endpoint))
	e.Bool(s.named)
	e.String(s.method)
	e.Time(s.acceptedAt)
	e.Int(s.deliveredAt.Sub(s.acceptedAt).Microseconds())
	e.Uint(uint64(s.size))
	e.Uint(uint64(s.attempts))
	e.Uint(uint64(s.charged))
	e.Bytes(s.fingerprint)
	putHistory(&e, s.history)
	return e.Record()
}

// summaryTime is when the event of a summary was delivered. It makes little garbage: each summary is looked at again and
// again until its retention has passed.
func summaryTime(seq uint64, rec []byte) (time.Time, error) {
	fields, err := layout.Fields(layout.KindDone, rec)
	if err != nil {
		return time.Time{}, fmt.Errorf("summary of event %d: %w", seq, err)
	}
	d := layout.NewDecoder(string(fields))
	_, _, _, _, _ = d.String(), d.Bool(), d.Uint(), d.Bool(), d.String() // up to the method
	accepted := d.Time()
	at := accepted.Add(time.Duration(d.Int()) * time.Microsecond)
	if err := d.Err(); err != nil {
		return time.Time{}, fmt.Errorf("summary of event %d: %w", seq, err)
	}
	return at, nil
}

func decodeSummary(seq uint64, rec []byte) (*summary, error) {
	fields, err := layout.Fields(layout.KindDone, rec)
	if err != nil {
		return nil, fmt.Errorf("summary of event %d: %w", seq, err)
	}
	d := layout.NewDecoder(string(fields))
	s := &summary{}
	id, ok := layout.UnpackID([]byte(d.String()))
	s.id = id
	s.explicit = d.Bool()
	s.endpoint = uint32(d.Uint())
	s.named = d.Bool()
	s.method = d.String()
	s.acceptedAt = d.Time()
	s.deliveredAt = s.acceptedAt.Add(time.Duration(d.Int()) * time.Microsecond)
	s.size = int64(d.Uint())
	s.attempts = int(d.Uint())
	s.charged = int(d.Uint())
	s.fingerprint = d.Bytes()
	s.history = getHistory(d)
	if err := d.Err(); err != nil || !ok {
		return nil, fmt.Errorf("summary of event %d: %w", seq, layout.ErrCorrupt)
	}
	return s, nil
}

// A row's target, which has no query, and its body are sealed where the ring seals; they are the last field then, behind a stamp.
func encodeOutboxRow(r *OutboxRow, ring *keyring.Ring) []byte {
	e := layout.NewEncoder(make([]byte, 0, 192+len(r.Body)), layout.KindOutbox)
	target, body := r.Target, r.Body
	seals := ring.Seals() && (target != "" || body != nil)
	if seals {
		target, body = "", nil
	}
	e.Bytes(layout.PackID(r.EventID))
	e.Uint(r.Version)
	e.String(r.Endpoint)
	e.Bool(r.Named)
	e.String(target)
	e.Uint(uint64(r.State))
	e.Uint(uint64(r.Attempts))
	e.Uint(uint64(r.MaxAttempts))
	e.Time(r.AcceptedAt)
	e.Time(r.NextAttempt)
	e.Time(r.DeliveredAt)
	e.String(r.DeadReason)
	var attempts []Attempt
	if r.Attempt != nil {
		attempts = []Attempt{*r.Attempt}
	}
	putHistory(&e, attempts)
	switch {
	case seals:
		sealRow(&e, r, ring)
	case body != nil:
		e.Bytes(body)
	}
	return e.Record()
}

func sealRow(e *layout.Encoder, r *OutboxRow, ring *keyring.Ring) {
	stamp := ring.Stamp()
	e.Seal()
	e.Raw(stamp[:])
	secret := layout.NewEncoder(make([]byte, 0, 32+len(r.Target)+len(r.Body)), layout.KindOutbox)
	secret.String(r.Target)
	secret.Bool(r.Body != nil)
	secret.Raw(r.Body)
	about := e.Fields()
	e.Append(func(dst []byte) []byte { return ring.Seal(dst, stamp, 0, secret.Fields(), about) })
}

// rowRecord is an outbox row's record taken apart.
type rowRecord struct {
	row    OutboxRow
	stamp  keyring.Stamp // where it is sealed
	sealed []byte        // likewise
	about  []byte        // likewise
}

// splitRow reads what needs no key.
func splitRow(index uint64, rec []byte) (r rowRecord, err error) {
	fields, err := layout.Fields(layout.KindOutbox, rec)
	if err != nil {
		return r, fmt.Errorf("outbox row %d: %w", index, err)
	}
	d := layout.NewDecoder(string(fields))
	var ok bool
	r.row, ok = getRow(index, d)
	switch {
	case layout.Sealed(rec):
		copy(r.stamp[:], d.Fixed(keyring.StampLen))
		at := len(fields) - len(d.Rest())
		r.about, r.sealed = fields[:at], fields[at:]
	case d.More():
		r.row.Body = d.Bytes()
	}
	if d.Err() != nil || !ok {
		return r, fmt.Errorf("outbox row %d: %w", index, layout.ErrCorrupt)
	}
	return r, nil
}

func getRow(index uint64, d *layout.Decoder) (r OutboxRow, ok bool) {
	r.Index = index
	r.EventID, ok = layout.UnpackID([]byte(d.String()))
	r.Version = d.Uint()
	r.Endpoint = d.String()
	r.Named = d.Bool()
	r.Target = d.String()
	r.State = State(d.Uint())
	r.Deleted = r.State == 0
	r.Attempts = int(d.Uint())
	r.MaxAttempts = int(d.Uint())
	r.AcceptedAt = d.Time()
	r.NextAttempt = d.Time()
	r.DeliveredAt = d.Time()
	r.DeadReason = d.String()
	if history := getHistory(d); len(history) > 0 {
		r.Attempt = &history[0]
	}
	return r, ok
}

func decodeOutboxRow(index uint64, rec []byte, ring *keyring.Ring) (OutboxRow, error) {
	r, err := splitRow(index, rec)
	if err != nil || !layout.Sealed(rec) {
		return r.row, err
	}
	plain, err := ring.Open(nil, r.stamp, 0, r.sealed, r.about)
	if err != nil {
		return OutboxRow{}, fmt.Errorf("outbox row %d: %w", index, err)
	}
	d := layout.NewDecoder(string(plain))
	r.row.Target = d.String()
	if d.Bool() {
		r.row.Body = []byte(d.Rest())
	}
	return r.row, d.Err()
}
