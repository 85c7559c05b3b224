package pagefile

import (
	"bytes"
	"slices"
)

// place is where in a tree a page hangs: its keys are at least lo and less than hi. A nil bound is none.
type place struct {
	lo, hi []byte
	root   bool // of a bucket: the only page that may be empty
	top    bool // in the tree of the file itself, which has buckets and nothing else
	// doubtful means that something above was damaged or out of date.
	doubtful bool
	loose    bool // lo and hi may be wrong
}

// inspect looks for any fault in a page whose table fits: entries that are not packed, keys that are empty, out of order
// or do not belong here, an overflow that does not fit the content. It returns nil for a page that bbolt can use.
func (k *keys) inspect(p *page, at place) *DamageError {
	if p.count == 0 {
		return inspectEmpty(p, at)
	}
	k.previous = nil
	next := p.dataStart()
	for i := range p.count {
		e := p.element(i)
		if fault := elementFault(p, e, next); fault != "" {
			return damage(p.id, "entry %d of %d %s", i, p.count, fault)
		}
		if at.top && p.isLeaf() && !e.isBucket() {
			return damage(p.id, "entry %d of %d is not a bucket, and stands where only buckets do", i, p.count)
		}
		key, err := k.read(p, e)
		if err != nil {
			return &DamageError{Page: p.id, What: "a key cannot be read", Err: err}
		}
		if fault := orderFault(i, key, k.previous, at); fault != "" {
			return damage(p.id, "entry %d of %d %s", i, p.count, fault)
		}
		k.previous = key
		next = e.end()
	}
	if at.hi != nil && bytes.Compare(k.previous, at.hi) >= 0 {
		return damage(p.id, "the last key belongs to a later page")
	}
	return k.inspectExtent(p, next)
}

// inspectEmpty judges a page without entries. Its unused bytes are zeros, unless its count was lost.
func inspectEmpty(p *page, at place) *DamageError {
	switch {
	case !at.root || !p.isLeaf():
		return damage(p.id, "it has no entries")
	case p.overflow > 0:
		return damage(p.id, "it has no entries and yet %d overflow pages", p.overflow)
	case !isZero(p.head[headerSize:min(len(p.head), headerSize+elementSize)]):
		return damage(p.id, "it says that it has no entries, and has some")
	}
	return nil
}

// inspectExtent checks that the page has just the overflow pages that its content needs. Earlier versions of bbolt took
// one more where the content ended with a page.
func (k *keys) inspectExtent(p *page, end int64) *DamageError {
	if k.pageSize == 0 {
		return nil // an inline page has none
	}
	if have := int64(p.overflow) + 1; have != (end+k.pageSize-1)/k.pageSize && have != end/k.pageSize+1 {
		return damage(p.id, "its overflow of %d pages does not fit its content of %d bytes", p.overflow, end)
	}
	return nil
}

func elementFault(p *page, e element, next int64) string {
	switch {
	case p.isLeaf() && e.flags > elementBucket:
		return "has unknown flags"
	case e.ksize == 0:
		return "has an empty key"
	case e.ksize > maxKeySize:
		return "has an impossible key length"
	case e.start != next:
		return "does not begin where the one before ends"
	case e.end() > p.extent:
		return "reaches beyond the page"
	case e.isBucket() && e.vsize < bucketSize:
		return "is too short for a bucket"
	}
	return ""
}

func orderFault(i int, key, previous []byte, at place) string {
	switch {
	case i > 0 && bytes.Compare(previous, key) >= 0:
		return "is not in key order"
	case i == 0 && at.lo != nil && bytes.Compare(key, at.lo) < 0:
		return "has a key that belongs to an earlier page"
	}
	return ""
}

// keys reads the keys of one page after the other, in place where they are at hand. A key stays valid until the second
// next one is read, so that neighbours can be compared.
type keys struct {
	rd       *reader
	pageSize int64 // 0 for inline pages, all of whose bytes are at hand
	off      int64 // of the page within the file
	previous []byte
	scratch  [2][]byte
	turn     int
}

// read returns the key of e, which must lie within the file.
func (k *keys) read(p *page, e element) ([]byte, error) {
	if end := e.start + e.ksize; end <= int64(len(p.head)) {
		return p.head[e.start:end:end], nil
	}
	k.turn = 1 - k.turn
	buf := resize(&k.scratch[k.turn], e.ksize)
	return buf, k.rd.into(buf, k.off+e.start)
}

// resize makes *buf n bytes long, of any content, and returns it.
func resize(buf *[]byte, n int64) []byte {
	*buf = slices.Grow((*buf)[:0], int(n))[:n]
	return *buf
}
