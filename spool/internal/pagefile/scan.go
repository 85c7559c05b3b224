package pagefile

import "context"

// Scan goes through the file page by page and yields, for as long as yield returns true, the entries of every page that
// looks like a leaf page, except for the pages in skip (nil: none): with the Whole of a Walk's report it yields what the
// Walk did not find.
//
// All its entries are Doubtful, and most of them may be out of date: bbolt never wipes a page, so that whatever was
// deleted or replaced stands there until its page is used again, often in several versions. Their order says nothing
// about their age, and the bucket is known for inline buckets only. FreePages tells, where bbolt stored it, which pages
// were not in use.
//
// The error is the context's.
func (f *File) Scan(ctx context.Context, skip *PageSet, yield func(Entry) bool) (Report, error) {
	t := f.newTraversal(ctx)
	c := f.newCollector(t.rd, yield)
	t.report, t.emit = c.fault, c.emit
	for id := uint64(2); id < f.pages; id++ {
		if err := ctx.Err(); err != nil {
			return c.report, err
		}
		if !skip.Has(id) && !t.scanPage(id) {
			break
		}
	}
	return c.report, nil
}

// scanPage emits what page id holds if it is a leaf page. Pages within the overflow of another are looked at as well:
// the other one may be a leftover, and they in use since.
func (t *traversal) scanPage(id uint64) bool {
	p, fault := t.f.readPage(t.rd, id, readAhead)
	if fault != nil {
		return fault.Err == nil || t.report(fault) // a page without its own number is no page
	}
	if !p.isLeaf() || p.count == 0 {
		return true
	}
	if fault := t.check(p, place{root: true}); fault != nil {
		t.report(fault)
		p.count = p.readable()
	}
	if !t.emit(p, t.f.offset(id), nil, place{doubtful: true}) {
		return false
	}
	_, goOn := t.buckets(p, place{doubtful: true})
	return goOn
}
