package pagefile

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// Walk yields every entry that can be reached from a root, bucket by bucket and in key order, for as long as yield
// returns true. It passes over pages that cannot be read and counts them.
//
// Where the tree has pages that its own meta page never knew, that meta page is from another time than the rest, as in a file
// that was copied while it was in use: then everything is Doubtful.
//
// It begins with the root that bbolt would use. Only where that one's tree is damaged does it go on with what the other
// meta page's root, one commit older, leads to beside: such entries are Doubtful, may be an earlier state of one that was
// yielded before, and may have been deleted. So a caller keeps the entries that are not Doubtful, and takes a Doubtful one
// only for a key that it has from nowhere else.
//
// The error is the context's; damage is never an error here.
func (f *File) Walk(ctx context.Context, yield func(Entry) bool) (Report, error) {
	t := f.newTraversal(ctx)
	c := f.newCollector(t.rd, yield)
	t.report, t.emit, t.missed = c.fault, c.emit, c.missed
	t.met = func(name []byte) { c.report.Buckets = append(c.report.Buckets, name) }
	roots := f.roots()
	if len(roots) == 0 {
		c.fault(damage(0, "no meta page has a root: of the first %v, of the second %v", f.metas[0].err, f.metas[1].err))
	}
	if len(roots) > 0 && !roots[0].doubtful {
		roots[0].doubtful = f.outgrown(ctx, roots[0])
	}
	if len(roots) == 0 || roots[0].doubtful {
		c.missed(Gap{}, false)
	}
	for i, root := range roots {
		if i > 0 && c.report.First == nil {
			break
		}
		if i > 0 {
			t.done, t.seen = t.seen, newPageSet(f.pages)
		}
		goOn := t.file(root)
		if i == 0 && !root.doubtful {
			c.report.Torn = c.damaged.clone()
		}
		if !goOn {
			break
		}
	}
	if errors.Is(t.err, errStopped) {
		t.err = nil
	}
	c.report.Gaps = InOrder(c.report.Gaps)
	return c.report, t.err
}

// outgrown tells whether the tree has a sound page from beyond the high-water mark of its meta page. A number that a flipped
// bit put there leads to no page that carries it.
func (f *File) outgrown(ctx context.Context, r root) (yes bool) {
	t := f.newTraversal(ctx)
	t.report = func(*DamageError) bool { return true }
	t.emit = func(p *page, _ int64, _ [][]byte, at place) bool {
		yes = yes || p.id >= f.metas[r.from].highWater && !at.doubtful
		return !yes
	}
	t.file(r)
	return yes
}

// root is where a tree begins.
type root struct {
	page     uint64
	from     uint64 // the meta page that says so
	doubtful bool
}

// roots returns the places where to begin, the best first: bbolt's choice, the other valid meta page's, and those of meta
// pages with nothing right but their magic number.
func (f *File) roots() []root {
	var found []int
	for n, m := range f.metas {
		if m.magic == metaMagic {
			found = append(found, n)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int {
		ma, mb := f.metas[a], f.metas[b]
		if valid := cmp.Compare(boolToInt(mb.err == nil), boolToInt(ma.err == nil)); valid != 0 {
			return valid
		}
		return cmp.Compare(mb.txid, ma.txid)
	})
	roots := make([]root, len(found))
	for i, n := range found {
		roots[i] = root{page: f.metas[n].root, from: uint64(n), doubtful: i > 0 || f.metas[n].err != nil}
	}
	return roots
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
