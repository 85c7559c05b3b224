package layout

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"
)

// SeqKey is the key of everything that belongs to one event.
func SeqKey(seq uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, seq)
}

// Seq is the reverse of SeqKey; ok is false for a key of another form.
func Seq(key []byte) (seq uint64, ok bool) {
	if len(key) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key), true
}

// DueKeyLen is the length of a key in Due.
const DueKeyLen = 4 + 8 + 8

// DueKey sorts by endpoint, then by due time, then by acceptance.
func DueKey(endpoint uint32, due time.Time, seq uint64) []byte {
	return AppendDueKey(make([]byte, 0, DueKeyLen), endpoint, due, seq)
}

// AppendDueKey is DueKey in a buffer of the caller's.
func AppendDueKey(dst []byte, endpoint uint32, due time.Time, seq uint64) []byte {
	dst = DuePrefix(dst, endpoint)
	dst = binary.BigEndian.AppendUint64(dst, Micros(due))
	return binary.BigEndian.AppendUint64(dst, seq)
}

// DuePrefix appends what all the keys of one endpoint begin with.
func DuePrefix(dst []byte, endpoint uint32) []byte {
	return binary.BigEndian.AppendUint32(dst, endpoint)
}

// ParseDueKey is the reverse of DueKey.
func ParseDueKey(key []byte) (endpoint uint32, due time.Time, seq uint64, ok bool) {
	if len(key) != DueKeyLen {
		return 0, time.Time{}, 0, false
	}
	due = FromMicros(binary.BigEndian.Uint64(key[4:]))
	return binary.BigEndian.Uint32(key), due, binary.BigEndian.Uint64(key[12:]), true
}

// ExpiryKey sorts by the time at which an event's TTL passes.
func ExpiryKey(at time.Time, seq uint64) []byte {
	key := binary.BigEndian.AppendUint64(make([]byte, 0, 16), Micros(at))
	return binary.BigEndian.AppendUint64(key, seq)
}

// ParseExpiryKey is the reverse of ExpiryKey.
func ParseExpiryKey(key []byte) (at time.Time, seq uint64, ok bool) {
	if len(key) != 16 {
		return time.Time{}, 0, false
	}
	return FromMicros(binary.BigEndian.Uint64(key)), binary.BigEndian.Uint64(key[8:]), true
}

// Micros maps a time to the number that keys and records hold: microseconds since 1970, and 0 for the zero time and for
// everything before 1970.
func Micros(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.UnixMicro(), 0))
}

// FromMicros is the reverse of Micros, in UTC.
func FromMicros(us uint64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(us)).UTC()
}

const (
	uuidPrefix = "evt_"
	uuidLen    = len(uuidPrefix) + 36
	// textTag begins the packed form of every ID that is not a UUID. No UUIDv7 begins with it before the year 10000;
	// one that does all the same is packed as text.
	textTag = 0xff
)

// PackID shortens an event ID of the form evt_UUID to 16 bytes and prefixes every other one with a tag. Distinct IDs
// have distinct packed forms, and generated ones sort by time.
func PackID(id string) []byte { return AppendID(nil, id) }

// AppendID is PackID in a buffer of the caller's.
func AppendID(dst []byte, id string) []byte {
	if raw, ok := packUUID(id); ok {
		return append(dst, raw[:]...)
	}
	return append(append(dst, textTag), id...)
}

// IsUUID tells whether an event ID has the form of those that are generated.
func IsUUID(id string) bool {
	_, ok := packUUID(id)
	return ok
}

func packUUID(id string) (raw [16]byte, ok bool) {
	if len(id) != uuidLen || !strings.HasPrefix(id, uuidPrefix) {
		return raw, false
	}
	u := id[len(uuidPrefix):]
	if u[8] != '-' || u[13] != '-' || u[18] != '-' || u[23] != '-' {
		return raw, false
	}
	var digits [32]byte
	n := copy(digits[:], u[:8])
	n += copy(digits[n:], u[9:13])
	n += copy(digits[n:], u[14:18])
	n += copy(digits[n:], u[19:23])
	copy(digits[n:], u[24:])
	if _, err := hex.Decode(raw[:], digits[:]); err != nil || raw[0] == textTag {
		return raw, false
	}
	// Upper-case digits would not come back as they were: such an ID is text.
	return raw, strings.ToLower(u) == u
}

// UnpackID is the reverse of PackID; ok is false for bytes that PackID never makes.
func UnpackID(key []byte) (id string, ok bool) {
	switch {
	case len(key) > 1 && key[0] == textTag:
		return string(key[1:]), true
	case len(key) != 16:
		return "", false
	}
	out := make([]byte, 0, uuidLen)
	out = append(out, uuidPrefix...)
	for i, b := range key {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = hex.AppendEncode(out, []byte{b})
	}
	return string(out), true
}
