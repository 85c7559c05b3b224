package pagefile

import "iter"

// freelist is a stored list of free pages.
type freelist struct {
	f     *File
	rd    *reader
	page  *page
	first int64 // where the numbers begin, from the start of the page
	count int64
}

const (
	// longList in place of the count means that the true count stands before the first number.
	longList   = 0xFFFF
	pageIDSize = 8
)

// openFreelist reads the beginning of the list at page id, which meta page from refers to.
func (f *File) openFreelist(rd *reader, id, from, limit uint64) (*freelist, *DamageError) {
	if id < 2 {
		return nil, damage(from, "it refers to page %d for the free pages, which is a meta page", id)
	}
	if id >= limit {
		return nil, damage(from, "it refers to page %d for the free pages, and the file has no page from number %d on", id, limit)
	}
	p, fault := f.readPage(rd, id, f.pageSize)
	if fault != nil {
		return nil, fault
	}
	if p.flags != flagFreelist {
		return nil, damage(id, "it is no list of free pages, but has the flags %#x", p.flags)
	}
	l := &freelist{f: f, rd: rd, page: p, first: headerSize, count: int64(p.count)}
	if p.count == longList && len(p.head) >= headerSize+pageIDSize {
		l.first += pageIDSize
		l.count = int64(order.Uint64(p.head[headerSize:]))
	}
	if l.count < 0 || l.count > (p.extent-l.first)/pageIDSize {
		return nil, damage(id, "it has no room for the %d free pages that it says it lists", uint64(l.count))
	}
	return l, nil
}

// ids yields the numbers in the list, or at the end a fault.
func (l *freelist) ids() iter.Seq2[uint64, *DamageError] {
	return func(yield func(uint64, *DamageError) bool) {
		buf := make([]byte, 64<<10)
		at, end := l.f.offset(l.page.id)+l.first, l.f.offset(l.page.id)+l.first+l.count*pageIDSize
		for ; at < end; at += int64(len(buf)) {
			buf = buf[:min(int64(len(buf)), end-at)]
			if err := l.rd.into(buf, at); err != nil {
				yield(0, &DamageError{Page: l.page.id, What: "it cannot be read", Err: err})
				return
			}
			for b := buf; len(b) > 0; b = b[pageIDSize:] {
				if !yield(order.Uint64(b), nil) {
					return
				}
			}
		}
	}
}

// FreePages returns the pages that the newest meta page lists as free: what Scan finds there was deleted or replaced. It
// is nil where no list is stored (bbolt's NoFreelistSync), and the error is a *DamageError where it cannot be read.
func (f *File) FreePages() (*PageSet, error) {
	n, ok := newest(f.metas)
	if !ok || f.metas[n].freelist == noFreelist {
		return nil, nil
	}
	l, fault := f.openFreelist(newReader(f.r, f.size), f.metas[n].freelist, uint64(n), f.pages)
	if fault != nil {
		return nil, fault
	}
	free := newPageSet(f.pages)
	for id, fault := range l.ids() {
		if fault != nil {
			return nil, fault
		}
		if id < f.pages {
			free.add(id)
		}
	}
	return free, nil
}
