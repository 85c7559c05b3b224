package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// Kind says what a record is, so that a salvage that finds it on a page without a name knows where it belongs.
type Kind uint8

// The kinds of records.
const (
	KindEvent Kind = iota + 1
	KindProgress
	KindDead
	KindDone
	KindIdem
	KindOutbox
	KindEndpoint
	KindState
	KindMinute
	KindInstance
	KindCounters
	KindRefused
	KindKeys
	KindBlind
	numKinds
)

// The frame of a record: version, kind, flags, CRC-32C of everything else, fields.
const (
	recordVersion = 1
	headerLen     = 7
	// FlagSealed is set where part of the fields is sealed with a key that the spool does not hold.
	FlagSealed = 1 << 0
)

// sealable tells which kinds may have FlagSealed.
func sealable(kind Kind) bool { return kind == KindEvent || kind == KindOutbox }

// ErrCorrupt is what every refused record's error wraps.
var ErrCorrupt = errors.New("the record is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(rec []byte) uint32 {
	sum := crc32.Update(0, castagnoli, rec[:3])
	return crc32.Update(sum, castagnoli, rec[headerLen:])
}

// Fields checks the frame of a record of the given kind and returns its fields, which alias rec.
func Fields(kind Kind, rec []byte) ([]byte, error) {
	got, err := KindOf(rec)
	if err != nil {
		return nil, err
	}
	if got != kind {
		return nil, fmt.Errorf("%w: kind %d where %d was expected", ErrCorrupt, got, kind)
	}
	return rec[headerLen:], nil
}

// Sealed tells whether a record whose frame was checked has a sealed part.
func Sealed(rec []byte) bool { return rec[2]&FlagSealed != 0 }

// KindOf checks the frame of a record and returns its kind.
func KindOf(rec []byte) (Kind, error) {
	switch {
	case len(rec) < headerLen:
		return 0, fmt.Errorf("%w: %d bytes are too few", ErrCorrupt, len(rec))
	case rec[0] != recordVersion:
		return 0, fmt.Errorf("%w: unknown version %d", ErrCorrupt, rec[0])
	case Kind(rec[1]) == 0 || Kind(rec[1]) >= numKinds:
		return 0, fmt.Errorf("%w: unknown kind %d", ErrCorrupt, rec[1])
	case binary.LittleEndian.Uint32(rec[3:]) != checksum(rec):
		return 0, fmt.Errorf("%w: the checksum does not match", ErrCorrupt)
	case rec[2] != 0 && !(rec[2] == FlagSealed && sealable(Kind(rec[1]))):
		return 0, fmt.Errorf("%w: unknown flags %#x", ErrCorrupt, rec[2])
	}
	return Kind(rec[1]), nil
}

// Encoder builds one record. The zero value is not usable; see NewEncoder.
type Encoder struct {
	buf []byte
}

// NewEncoder starts a record of the given kind in dst, whose content is overwritten.
func NewEncoder(dst []byte, kind Kind) Encoder {
	return Encoder{append(dst[:0], recordVersion, byte(kind), 0, 0, 0, 0, 0)}
}

// Seal marks the record as one with a sealed part.
func (e *Encoder) Seal() { e.buf[2] |= FlagSealed }

// Fields are those added so far. They are valid until the next one is added.
func (e *Encoder) Fields() []byte { return e.buf[headerLen:] }

// Uint adds an unsigned number as a varint.
func (e *Encoder) Uint(v uint64) { e.buf = binary.AppendUvarint(e.buf, v) }

// Int adds a signed number as a zigzag varint.
func (e *Encoder) Int(v int64) { e.buf = binary.AppendVarint(e.buf, v) }

// Bool adds one byte.
func (e *Encoder) Bool(v bool) {
	if v {
		e.buf = append(e.buf, 1)
		return
	}
	e.buf = append(e.buf, 0)
}

// String adds a length and the bytes.
func (e *Encoder) String(s string) {
	e.Uint(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// Bytes adds a length and the bytes.
func (e *Encoder) Bytes(b []byte) {
	e.Uint(uint64(len(b)))
	e.buf = append(e.buf, b...)
}

// Time adds a time in microseconds; the zero time comes back as such.
func (e *Encoder) Time(t time.Time) { e.Uint(Micros(t)) }

// Raw adds bytes without a length: the last field, or one whose length is fixed.
func (e *Encoder) Raw(b []byte) { e.buf = append(e.buf, b...) }

// Append lets fn append to the record; the same holds as for Raw.
func (e *Encoder) Append(fn func(dst []byte) []byte) { e.buf = fn(e.buf) }

// Len is the number of bytes so far, the frame included.
func (e *Encoder) Len() int { return len(e.buf) }

// Record completes the record and returns it. The encoder must not be used afterwards.
func (e *Encoder) Record() []byte {
	binary.LittleEndian.PutUint32(e.buf[3:], checksum(e.buf))
	return e.buf
}
