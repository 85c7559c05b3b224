package layout

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Decoder reads the fields of one record in the order in which they were added. The first field that is not there makes
// Err non-nil, and from then on every field reads as zero. Strings that it returns share the memory of its input.
type Decoder struct {
	s   string
	bad bool
}

// NewDecoder reads fields from s. Whoever holds bytes converts them once: one allocation then serves every string.
func NewDecoder(s string) *Decoder { return &Decoder{s: s} }

// Err returns an error that wraps ErrCorrupt if a field was missing.
func (d *Decoder) Err() error {
	if d.bad {
		return fmt.Errorf("%w: a field is cut off", ErrCorrupt)
	}
	return nil
}

// More tells that fields are left: those that a later version added to the end of a record.
func (d *Decoder) More() bool { return d.s != "" }

func (d *Decoder) fail() { d.bad, d.s = true, "" }

// Uint reads what Encoder.Uint added.
func (d *Decoder) Uint() uint64 {
	var v uint64
	for i := range min(len(d.s), binary.MaxVarintLen64) {
		b := d.s[i]
		if b < 0x80 {
			if i == binary.MaxVarintLen64-1 && b > 1 {
				break
			}
			d.s = d.s[i+1:]
			return v | uint64(b)<<(7*i)
		}
		v |= uint64(b&0x7f) << (7 * i)
	}
	d.fail()
	return 0
}

// Int reads what Encoder.Int added.
func (d *Decoder) Int() int64 {
	u := d.Uint()
	return int64(u>>1) ^ -int64(u&1)
}

// Bool reads what Encoder.Bool added.
func (d *Decoder) Bool() bool {
	if d.s == "" {
		d.fail()
		return false
	}
	b := d.s[0]
	d.s = d.s[1:]
	return b != 0
}

// String reads what Encoder.String or Encoder.Bytes added.
func (d *Decoder) String() string {
	n := d.Uint()
	if n > uint64(len(d.s)) {
		d.fail()
		return ""
	}
	s := d.s[:n]
	d.s = d.s[n:]
	return s
}

// Fixed reads n bytes that Encoder.Raw added.
func (d *Decoder) Fixed(n int) string {
	if n > len(d.s) {
		d.fail()
		return ""
	}
	s := d.s[:n]
	d.s = d.s[n:]
	return s
}

// Bytes is String as bytes of its own, nil where there are none.
func (d *Decoder) Bytes() []byte {
	if s := d.String(); s != "" {
		return []byte(s)
	}
	return nil
}

// Time reads what Encoder.Time added.
func (d *Decoder) Time() time.Time { return FromMicros(d.Uint()) }

// Count reads the length of a list whose elements take at least size bytes each; a longer list than the input can hold
// is an error, so that a damaged length never becomes an allocation.
func (d *Decoder) Count(size int) int {
	n := d.Uint()
	if n > uint64(len(d.s)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

// Rest is what has not been read yet.
func (d *Decoder) Rest() string { return d.s }
