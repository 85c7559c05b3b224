package spool

import (
	"encoding/binary"
	"fmt"
	"time"

	"postern/spool/internal/keyring"
	"postern/spool/internal/layout"
)

// The event's record is: length of the head, head, body. The head comes back as one string that all names and values
// share; the body stays out of reach of whoever does not ask for it. Where a key seals, the target and the headers are a
// sealed part at the end of the head, behind their stamp, and the body is another: so a list opens no bodies. What is left
// in the clear says which event it is and when it is due, but not what is in it; the sealed parts are bound to it.

// eventPart selects how much of an event's record becomes an Event. A part includes those before it.
type eventPart uint8

const (
	eventHead    eventPart = iota // without target, headers and body: what needs no key
	eventTarget                   // the target, too
	eventHeaders                  // the headers, too
	eventPayload                  // everything
)

// The sealed parts of an event.
const (
	sealedHead uint32 = iota
	sealedBody
)

func encodeEvent(ev *Event, ring *keyring.Ring) []byte {
	size := 96 + len(ev.ID) + len(ev.Endpoint) + len(ev.Target)
	for _, h := range ev.Headers {
		size += 4 + len(h.Name) + len(h.Value)
	}
	if ring.Seals() {
		return encodeSealed(ev, ring, size+keyring.StampLen+2*keyring.Overhead)
	}
	head := layout.NewEncoder(make([]byte, 0, size), layout.KindEvent)
	putHead(&head, ev)
	putHeaders(&head, ev.Headers)
	rec := joinEvent(head, len(ev.Body))
	rec.Raw(ev.Body)
	return rec.Record()
}

// encodeSealed is encodeEvent with a key.
func encodeSealed(ev *Event, ring *keyring.Ring, size int) []byte {
	stamp := ring.Stamp()
	head := layout.NewEncoder(make([]byte, 0, size), layout.KindEvent)
	clear := *ev
	clear.Target = ""
	putHead(&head, &clear)
	head.Raw(stamp[:])
	about := head.Fields()
	secret := layout.NewEncoder(make([]byte, 0, size), layout.KindEvent)
	secret.String(ev.Target)
	putHeaders(&secret, ev.Headers)
	head.Bytes(ring.Seal(nil, stamp, sealedHead, secret.Fields(), about))
	rec := joinEvent(head, len(ev.Body)+keyring.Overhead)
	rec.Seal()
	rec.Append(func(dst []byte) []byte { return ring.Seal(dst, stamp, sealedBody, ev.Body, about) })
	return rec.Record()
}

// joinEvent begins the record with the head's length and the head; the body is to follow.
func joinEvent(head layout.Encoder, body int) layout.Encoder {
	frame := layout.NewEncoder(nil, layout.KindEvent)
	fields := head.Fields()
	rec := layout.NewEncoder(make([]byte, 0, frame.Len()+5+len(fields)+body), layout.KindEvent)
	rec.Bytes(fields)
	return rec
}

func putHeaders(e *layout.Encoder, headers []Header) {
	e.Uint(uint64(len(headers)))
	for _, h := range headers {
		e.String(h.Name)
		e.String(h.Value)
	}
}

// eventRecord is an event's record taken apart.
type eventRecord struct {
	event Event
	rest  *layout.Decoder // behind what getHead reads
	body  []byte
	stamp keyring.Stamp // where the record is sealed
	about []byte        // likewise
}

// splitEvent reads what needs no key.
func splitEvent(rec []byte) (r eventRecord, err error) {
	fields, err := layout.Fields(layout.KindEvent, rec)
	if err != nil {
		return r, err
	}
	n, used := binary.Uvarint(fields)
	if used <= 0 || n > uint64(len(fields)-used) {
		return r, fmt.Errorf("%w: the head is cut off", layout.ErrCorrupt)
	}
	head := fields[used : used+int(n)]
	r.body = fields[used+int(n):]
	r.rest = layout.NewDecoder(string(head))
	r.event = getHead(r.rest)
	if layout.Sealed(rec) {
		copy(r.stamp[:], r.rest.Fixed(keyring.StampLen))
		r.about = head[:len(head)-len(r.rest.Rest())]
	}
	return r, r.rest.Err()
}

// decodeEvent reads a record without keeping a reference to it. The int64 is the size of the body. ring may be nil where
// only the head is asked for.
func decodeEvent(seq uint64, rec []byte, part eventPart, ring *keyring.Ring) (*Event, int64, error) {
	r, err := splitEvent(rec)
	if err != nil {
		return nil, 0, fmt.Errorf("event %d: %w", seq, err)
	}
	size := int64(len(r.body))
	ev := &r.event
	ev.Seq = seq
	if layout.Sealed(rec) {
		size = max(size-keyring.Overhead, 0)
		err = r.open(part, ring)
	} else {
		if part >= eventHeaders {
			ev.Headers = decodeHeaders(r.rest)
		}
		if part == eventPayload {
			ev.Body = append([]byte(nil), r.body...)
		}
		err = r.rest.Err()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("event %d: %w", seq, err)
	}
	return ev, size, nil
}

// open adds the sealed parts that are asked for.
func (r *eventRecord) open(part eventPart, ring *keyring.Ring) error {
	if part == eventHead {
		return nil
	}
	plain, err := ring.Open(nil, r.stamp, sealedHead, []byte(r.rest.String()), r.about)
	if err != nil {
		return err
	}
	d := layout.NewDecoder(string(plain))
	r.event.Target = d.String()
	if part >= eventHeaders {
		r.event.Headers = decodeHeaders(d)
	}
	if part == eventPayload {
		if r.event.Body, err = ring.Open(nil, r.stamp, sealedBody, r.body, r.about); err != nil {
			return err
		}
	}
	return d.Err()
}

func decodeHeaders(d *layout.Decoder) []Header {
	n := d.Count(2)
	if n == 0 {
		return nil
	}
	headers := make([]Header, n)
	for i := range headers {
		headers[i] = Header{Name: d.String(), Value: d.String()}
	}
	return headers
}

// firstDue is when an event that was never touched is due.
func firstDue(ev *Event) time.Time {
	if ev.NotBefore.After(ev.AcceptedAt) {
		return ev.NotBefore
	}
	return ev.AcceptedAt
}

// initialProgress is that of an event without a progress record.
func initialProgress(ev *Event) progress {
	return progress{Progress: Progress{Since: ev.AcceptedAt, NextAttempt: firstDue(ev)}, version: 1}
}
