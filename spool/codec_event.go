package spool

import (
	"encoding/binary"
	"fmt"
	"time"

	"postern/spool/internal/layout"
)

// The event's record is: length of the head, head, body. The head comes back as one string that all names and values
// share; the body stays out of reach of whoever does not ask for it.

// eventPart selects how much of an event's record becomes an Event.
type eventPart uint8

const (
	eventHead    eventPart = iota // without headers and body
	eventHeaders                  // without body
	eventPayload                  // everything
)

func encodeEvent(ev *Event) []byte {
	size := 96 + len(ev.ID) + len(ev.Endpoint) + len(ev.Target)
	for _, h := range ev.Headers {
		size += 4 + len(h.Name) + len(h.Value)
	}
	head := layout.NewEncoder(make([]byte, 0, size), layout.KindEvent)
	putHead(&head, ev)
	head.Uint(uint64(len(ev.Headers)))
	for _, h := range ev.Headers {
		head.String(h.Name)
		head.String(h.Value)
	}
	return joinEvent(head, ev.Body)
}

// joinEvent puts the head's length before the head and the body behind it.
func joinEvent(head layout.Encoder, body []byte) []byte {
	frame := layout.NewEncoder(nil, layout.KindEvent)
	fields := head.Record()[frame.Len():]
	rec := layout.NewEncoder(make([]byte, 0, frame.Len()+5+len(fields)+len(body)), layout.KindEvent)
	rec.Bytes(fields)
	rec.Raw(body)
	return rec.Record()
}

// decodeEvent reads a record without keeping a reference to it.
func decodeEvent(seq uint64, rec []byte, part eventPart) (*Event, int64, error) {
	fields, err := layout.Fields(layout.KindEvent, rec)
	if err != nil {
		return nil, 0, fmt.Errorf("event %d: %w", seq, err)
	}
	n, used := binary.Uvarint(fields)
	if used <= 0 || n > uint64(len(fields)-used) {
		return nil, 0, fmt.Errorf("event %d: %w: the head is cut off", seq, layout.ErrCorrupt)
	}
	body := fields[used+int(n):]
	d := layout.NewDecoder(string(fields[used : used+int(n)]))
	event := getHead(d)
	event.Seq = seq
	ev := &event
	if part >= eventHeaders {
		ev.Headers = decodeHeaders(d)
	}
	if part == eventPayload {
		ev.Body = append([]byte(nil), body...)
	}
	if err := d.Err(); err != nil {
		return nil, 0, fmt.Errorf("event %d: %w", seq, err)
	}
	return ev, int64(len(body)), nil
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
