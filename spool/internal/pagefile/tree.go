package pagefile

import (
	"cmp"
	"context"
	"slices"
)

// traversal follows a tree from its root and comes to each page once. With strict set it stops at the first fault, as
// Verify needs it; without, it reports faults and goes on with whatever can be made out.
type traversal struct {
	ctx    context.Context
	f      *File
	rd     *reader
	keys   keys
	strict bool
	limit  uint64   // the first page number that cannot be right
	seen   *PageSet // pages come to; where strict, with their overflow
	done   *PageSet // pages that an earlier traversal came to; they are passed over

	// report is told of a fault and answers whether to go on.
	report func(*DamageError) bool
	// emit is given each leaf page, and the page of each inline bucket, and answers whether to go on. May be nil.
	emit func(p *page, off int64, bucket [][]byte, at place) bool
	// missed is told of the keys of which nothing sure is to be had. May be nil.
	missed func(g Gap, loose bool)
	// met is told of each bucket of the file that a sound page names. May be nil.
	met func(name []byte)

	bucket  [][]byte // names on the way to where we are; kept only for emit
	buffers [][]byte // a copy of the branch page at each depth
	inline  []byte
	err     error // why it ended early, where that is no fault of the file
}

const (
	// maxDepth bounds branch pages and nested buckets on one path. A tree of the largest file has fewer than 40 levels.
	maxDepth = 128
	// maxBranch is what the largest branch page needs: four of the longest keys, rounded up.
	maxBranch = 256 << 10
	// gapPages is how many other pages between two wanted ones are read along rather than skipped.
	gapPages = 4
)

func (f *File) newTraversal(ctx context.Context) *traversal {
	rd := newReader(f.r, f.size)
	return &traversal{
		ctx: ctx, f: f, rd: rd,
		keys:  keys{rd: rd, pageSize: f.pageSize},
		limit: f.pages,
		seen:  newPageSet(f.pages),
	}
}

// file visits the whole tree of the file.
func (t *traversal) file(r root) bool {
	return t.tree(r.page, r.from, place{root: true, top: true, doubtful: r.doubtful}, 0)
}

// tree visits the pages below page id, to which page from refers. It returns false where the traversal is to end.
func (t *traversal) tree(id, from uint64, at place, depth int) bool {
	p, fault, skip := t.load(id, from, t.f.pageSize)
	if fault != nil {
		return t.lose(fault, at)
	}
	return skip || t.visit(p, at, depth)
}

// load reads the first part of page id and checks its header. skip means that it was dealt with before.
func (t *traversal) load(id, from uint64, ahead int64) (p *page, fault *DamageError, skip bool) {
	if id < 2 {
		return nil, damage(from, "it refers to page %d, which is a meta page", id), false
	}
	if id >= t.limit {
		return nil, damage(from, "it refers to page %d, and the file has no page from number %d on", id, t.limit), false
	}
	if t.done.Has(id) {
		return nil, nil, true
	}
	if !t.seen.add(id) {
		return nil, damage(id, "it is referred to twice, the second time by page %d", from), false
	}
	p, fault = t.f.readPage(t.rd, id, ahead)
	if fault == nil && !p.isBranch() && !p.isLeaf() {
		fault = damage(id, "it is no page of a tree, but has the flags %#x", p.flags)
	}
	if fault == nil && t.strict {
		fault = t.claimOverflow(p)
	}
	return p, fault, false
}

// readPage reads the first part of page id, whatever page that is.
func (f *File) readPage(rd *reader, id uint64, ahead int64) (*page, *DamageError) {
	off := f.offset(id)
	n := min(f.pageSize, f.size-off)
	if n < headerSize {
		return nil, &DamageError{Page: id, What: "it is missing", Err: ErrTruncated}
	}
	head, err := rd.bytes(off, n, ahead)
	if err != nil {
		return nil, &DamageError{Page: id, What: "it cannot be read", Err: err}
	}
	p := parsePage(head, f.pageSize)
	if p.id != id {
		return nil, damage(id, "it says that it is page %d", p.id)
	}
	p.extent = min(p.extent, f.size-off)
	return &p, nil
}

func (f *File) offset(id uint64) int64 { return int64(id) * f.pageSize }

// claimOverflow notes the pages that p goes on over: no other page may be found there.
func (t *traversal) claimOverflow(p *page) *DamageError {
	if uint64(p.overflow) >= t.limit-p.id {
		return damage(p.id, "its overflow of %d pages reaches beyond the last page", p.overflow)
	}
	for i := range uint64(p.overflow) {
		if !t.seen.add(p.id + 1 + i) {
			return damage(p.id, "its overflow covers page %d, which is in use otherwise", p.id+1+i)
		}
	}
	return nil
}

// lose reports a fault that leaves nothing sure of what hangs at this place, and answers whether to go on.
func (t *traversal) lose(fault *DamageError, at place) bool {
	t.miss(at)
	return t.report(fault)
}

func (t *traversal) visit(p *page, at place, depth int) bool {
	if t.err = t.ctx.Err(); t.err != nil {
		return false
	}
	if depth >= maxDepth {
		return t.lose(damage(p.id, "it is nested deeper than %d pages", maxDepth), at)
	}
	if fault := t.check(p, at); fault != nil {
		// Where a page and the one above it do not agree, either may lie.
		at.loose = true
		if !t.lose(fault, at) {
			return false
		}
		at = place{top: at.top, doubtful: true}
		p.count = p.readable()
	}
	if p.isBranch() {
		return t.branch(p, at, depth)
	}
	return t.leaf(p, at, depth)
}

func (t *traversal) check(p *page, at place) *DamageError {
	if !p.tableFits() {
		return damage(p.id, "it has no room for the %d entries that it says it has", p.count)
	}
	if p.isBranch() && p.extent > max(t.f.pageSize, maxBranch) {
		return damage(p.id, "its overflow of %d pages is too much for a branch page", p.overflow)
	}
	t.keys.off = t.f.offset(p.id)
	return t.keys.inspect(p, at)
}

// child is one reference of a branch page.
type child struct {
	id uint64
	at place
}

func (t *traversal) branch(p *page, at place, depth int) bool {
	parent := p.id
	children, fault := t.children(p, at, depth)
	if fault != nil {
		return t.lose(fault, at)
	}
	if t.strict {
		// Their order does not matter then, and the disk likes this one.
		slices.SortFunc(children, func(a, b child) int { return cmp.Compare(a.id, b.id) })
	}
	ahead := true
	for i, c := range children {
		want := t.f.pageSize
		if ahead && !t.rd.holds(t.f.offset(c.id), want) {
			want = t.run(children[i:])
		}
		p, fault, skip := t.load(c.id, parent, want)
		if skip {
			continue
		}
		if fault != nil {
			if !t.lose(fault, c.at) {
				return false
			}
			continue
		}
		if !t.visit(p, c.at, depth+1) {
			return false
		}
		// Where a child has pages below it, the window is elsewhere now, and what was read ahead was in vain.
		ahead = t.rd.holds(t.f.offset(c.id), 1)
	}
	return true
}

// children copies p, whose bytes do not last, and returns what it refers to.
func (t *traversal) children(p *page, at place, depth int) ([]child, *DamageError) {
	for len(t.buffers) <= depth {
		t.buffers = append(t.buffers, nil)
	}
	buf := resize(&t.buffers[depth], min(p.extent, max(t.f.pageSize, maxBranch)))
	if err := t.rd.into(buf, t.f.offset(p.id)); err != nil {
		return nil, &DamageError{Page: p.id, What: "it cannot be read", Err: err}
	}
	p.head = buf
	children := make([]child, p.count)
	for i := range children {
		e := p.element(i)
		c := child{id: e.child, at: place{top: at.top, doubtful: at.doubtful}}
		if !at.doubtful {
			c.at.lo, c.at.hi = buf[e.start:e.start+e.ksize], at.hi
		}
		if i > 0 {
			children[i-1].at.hi = c.at.lo
		}
		children[i] = c
	}
	return children, nil
}

// run returns how many bytes to read in one go for the pages that stand close together at the front of children.
func (t *traversal) run(children []child) int64 {
	first, last := children[0].id, children[0].id
	for _, c := range children[1:] {
		if c.id <= last || c.id-last > gapPages || c.id-first > readAhead/minPageSize {
			break
		}
		last = c.id
	}
	return int64(last-first+1) * t.f.pageSize
}
