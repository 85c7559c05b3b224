package pagefile

import (
	"context"
)

// Verify checks everything that bbolt relies on: the meta page that it would choose, every page of the tree that hangs
// from it, and the list of free pages where one is stored. It returns nil where bbolt can be trusted with the file, a
// *DamageError with the first fault, or the context's error.
//
// Values are not read. A gigabyte takes a fraction of a second once it is in memory.
func (f *File) Verify(ctx context.Context) error {
	n, ok := newest(f.metas)
	if !ok {
		return damage(0, "no meta page is valid: of the first %v, of the second %v", f.metas[0].err, f.metas[1].err)
	}
	m := f.metas[n]
	if whole := uint64(f.size / f.pageSize); m.highWater > whole {
		d := damage(whole, "it is missing, and so is everything up to page %d", m.highWater-1)
		d.Err = ErrTruncated
		return d
	}
	var first *DamageError
	t := f.newTraversal(ctx)
	t.strict = true
	t.limit = m.highWater
	t.report = func(d *DamageError) bool {
		first = d
		return false
	}
	if t.file(root{page: m.root, from: uint64(n)}) && m.freelist != noFreelist {
		first = t.verifyFreelist(m.freelist, uint64(n))
	}
	if first != nil {
		return first
	}
	return t.err
}

// verifyFreelist checks the list of free pages: bbolt hands out whatever stands there to be overwritten.
func (t *traversal) verifyFreelist(id, from uint64) *DamageError {
	list, fault := t.f.openFreelist(t.rd, id, from, t.limit)
	if fault != nil {
		return fault
	}
	if !t.seen.add(id) {
		return damage(id, "it is a page of the tree and the list of free pages")
	}
	if fault := t.claimOverflow(list.page); fault != nil {
		return fault
	}
	last := uint64(1)
	for free, fault := range list.ids() {
		switch {
		case fault != nil:
			return fault
		case free <= last || free >= t.limit:
			return damage(id, "the list of free pages is not one of ascending page numbers")
		case t.seen.Has(free):
			return damage(id, "page %d is listed as free, and is in use", free)
		}
		last = free
	}
	return nil
}
