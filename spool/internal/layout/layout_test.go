package layout

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBucketNames(t *testing.T) {
	for b := range NumBuckets {
		if got, ok := ByName(b.Name()); !ok || got != b {
			t.Errorf("bucket %d is called %q, which is bucket %d", b, b, got)
		}
	}
	if _, ok := ByName([]byte("other")); ok {
		t.Error("an unknown name is a bucket")
	}
}

func TestPackID(t *testing.T) {
	const uuid = "evt_0190a6c0-7b2c-7def-8123-456789abcdef"
	tests := []struct {
		id   string
		size int
	}{
		{uuid, 16},
		{strings.ToUpper(uuid[4:]), 37},
		{"evt_" + strings.ToUpper(uuid[4:]), 41},
		{"evt_ff90a6c0-7b2c-7def-8123-456789abcdef", 41},
		{"evt_0190a6c0-7b2c-7def-8123-456789abcdeg", 41},
		{"evt_0190a6c07b2c-7def-8123-456789abcdef-", 41},
		{"order-4711", 11},
		{"a", 2},
		{"123456789012345", 16}, // as long as a UUID when it is packed
	}
	seen := map[string]string{}
	for _, tt := range tests {
		packed := PackID(tt.id)
		if len(packed) != tt.size {
			t.Errorf("%s takes %d bytes, want %d", tt.id, len(packed), tt.size)
		}
		if got, ok := UnpackID(packed); !ok || got != tt.id {
			t.Errorf("%s comes back as %q, %v", tt.id, got, ok)
		}
		if other, twice := seen[string(packed)]; twice {
			t.Errorf("%s and %s are packed alike", tt.id, other)
		}
		seen[string(packed)] = tt.id
	}
}

// TestUnpackIDIsUnique: what unpacks, packs to the same bytes, so that no two keys mean one event.
func TestUnpackIDIsUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "key")
		id, ok := UnpackID(key)
		if !ok {
			return
		}
		if _, isUUID := packUUID(id); !isUUID && key[0] != textTag || isUUID && key[0] == textTag {
			return // never made by PackID
		}
		if got := PackID(id); !bytes.Equal(got, key) {
			t.Fatalf("%x unpacks to %q, which packs to %x", key, id, got)
		}
	})
}

func TestDueKeysSort(t *testing.T) {
	early, late := time.UnixMicro(1_700_000_000_000_000), time.UnixMicro(1_700_000_000_000_001)
	keys := [][]byte{
		DueKey(1, time.Time{}, 9), DueKey(1, early, 2), DueKey(1, early, 3), DueKey(1, late, 1), DueKey(2, early, 0),
	}
	for i := 1; i < len(keys); i++ {
		if bytes.Compare(keys[i-1], keys[i]) >= 0 {
			t.Errorf("key %d does not sort before key %d", i-1, i)
		}
	}
	endpoint, due, seq, ok := ParseDueKey(keys[3])
	if !ok || endpoint != 1 || !due.Equal(late) || seq != 1 {
		t.Errorf("parsed: %d, %v, %d, %v", endpoint, due, seq, ok)
	}
	if _, _, _, ok := ParseDueKey(keys[3][1:]); ok {
		t.Error("a short key is parsed")
	}
}

func TestTimes(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond)
	for _, tt := range []struct{ in, want time.Time }{
		{time.Time{}, time.Time{}}, {now, now}, {time.Unix(-5, 0), time.Time{}},
	} {
		if got := FromMicros(Micros(tt.in)); !got.Equal(tt.want) {
			t.Errorf("%v comes back as %v", tt.in, got)
		}
	}
}

func record() []byte {
	e := NewEncoder(nil, KindEvent)
	e.Uint(math.MaxUint64)
	e.Int(math.MinInt64)
	e.Bool(true)
	e.String("text")
	e.Bytes([]byte{0, 255})
	e.Time(time.UnixMicro(1234567))
	e.Raw([]byte("rest"))
	return e.Record()
}

func TestRecord(t *testing.T) {
	fields, err := Fields(KindEvent, record())
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(string(fields))
	if u, i, b := d.Uint(), d.Int(), d.Bool(); u != math.MaxUint64 || i != math.MinInt64 || !b {
		t.Error(u, i, b)
	}
	if s, b, at := d.String(), d.Bytes(), d.Time(); s != "text" || !bytes.Equal(b, []byte{0, 255}) || at.UnixMicro() != 1234567 {
		t.Error(s, b, at)
	}
	if d.Rest() != "rest" || d.Err() != nil {
		t.Error(d.Rest(), d.Err())
	}
	if _, err := Fields(KindDone, record()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("another kind: %v", err)
	}
}

// TestEveryBitCounts: no single flipped bit goes unnoticed.
func TestEveryBitCounts(t *testing.T) {
	rec := record()
	for i := range len(rec) * 8 {
		rec[i/8] ^= 1 << (i % 8)
		if _, err := KindOf(rec); !errors.Is(err, ErrCorrupt) {
			t.Errorf("bit %d: %v", i, err)
		}
		rec[i/8] ^= 1 << (i % 8)
	}
	for n := range len(rec) {
		if _, err := KindOf(rec[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
}

func TestCutFieldsAreAnError(t *testing.T) {
	reads := map[string]func(*Decoder){
		"uint":   func(d *Decoder) { d.Uint() },
		"bool":   func(d *Decoder) { d.Bool() },
		"string": func(d *Decoder) { _ = d.String() },
		"count":  func(d *Decoder) { d.Count(4) },
	}
	inputs := map[string]string{
		"uint": "\x80", "bool": "", "string": "\x05abc", "count": "\x02abcdefg",
	}
	for name, read := range reads {
		d := NewDecoder(inputs[name])
		read(d)
		if !errors.Is(d.Err(), ErrCorrupt) {
			t.Errorf("%s: %v", name, d.Err())
		}
		if d.Uint() != 0 || d.String() != "" || d.Bytes() != nil || d.Bool() {
			t.Errorf("%s: something is read after the error", name)
		}
	}
	over := NewDecoder("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")
	if over.Uint(); over.Err() == nil {
		t.Error("a number of 65 bits is read")
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte("\x05hello\x01\x80\x80\x01"))
	f.Add(record())
	f.Fuzz(func(t *testing.T, in []byte) {
		_, _ = KindOf(in)
		_, _ = UnpackID(in)
		d := NewDecoder(string(in))
		n := d.Count(2)
		if n > len(in) {
			t.Fatalf("a list of %d in %d bytes", n, len(in))
		}
		for d.Err() == nil && d.Rest() != "" {
			_, _, _, _, _ = d.Uint(), d.Int(), d.String(), d.Bool(), d.Time()
		}
	})
}
