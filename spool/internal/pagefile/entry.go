package pagefile

import (
	"errors"
	"slices"
)

// Entry is one key with its value. All its slices are valid only during the call that hands it over.
type Entry struct {
	// Bucket has the names of the buckets down to the one that the entry is in. Scan knows it for inline buckets only,
	// and then only the last name.
	Bucket [][]byte
	Key    []byte
	Value  []byte
	Page   uint64 // the leaf page it was found on
	// Doubtful means that the entry may be of an earlier time, deleted since, of another bucket, or cut wrongly: it stands
	// on a page with a fault or below one, or was reached by the older of the two roots, or it comes from Scan.
	Doubtful bool
}

// Report says how much a Walk or a Scan found.
type Report struct {
	Pages   int // leaf pages of which entries were yielded
	Entries int // yielded
	// DamagedPages had a fault. Some or all of their entries may have been yielded nevertheless.
	DamagedPages int
	// SkippedEntries could be seen in the tables of their pages, but not read.
	SkippedEntries int
	// First is the first fault, or nil.
	First *DamageError
	// Whole has the leaf pages of which every entry was yielded.
	Whole *PageSet
	// Torn has the pages with a fault that bbolt's root leads to: what stands on them was in use, and not left from earlier.
	// It is nil where nothing is sure of that root.
	Torn *PageSet
	// Gaps are the keys of which a Walk has yielded nothing that is not Doubtful, bucket by bucket in the order of the keys.
	// What is in none of them, in a bucket of Buckets, and was not yielded, was not in the file.
	Gaps []Gap
	// Buckets names the buckets of the file itself that a Walk has met in a place without a fault.
	Buckets [][]byte
}

// errStopped is how a traversal learns that its caller wants no more; it is never handed out.
var errStopped = errors.New("stopped")

// collector yields the entries of single pages and keeps the report.
type collector struct {
	f       *File
	rd      *reader
	yield   func(Entry) bool
	report  Report
	damaged *PageSet
	last    []byte   // sure key that was yielded
	lastIn  [][]byte // its bucket
	key     []byte
	value   []byte
}

func (f *File) newCollector(rd *reader, yield func(Entry) bool) *collector {
	return &collector{
		f: f, rd: rd, yield: yield,
		report:  Report{Whole: newPageSet(f.pages)},
		damaged: newPageSet(f.pages),
	}
}

// fault notes damage; there is always more to be looked for.
func (c *collector) fault(d *DamageError) bool {
	if c.report.First == nil {
		c.report.First = d
	}
	if d.Page < c.f.pages && c.damaged.add(d.Page) {
		c.report.DamagedPages++
	}
	return true
}

// emit yields the entries of p that are no buckets. off is where p begins in the file, -1 for an inline page.
func (c *collector) emit(p *page, off int64, bucket [][]byte, at place) bool {
	yielded, skipped := c.report.Entries, c.report.SkippedEntries
	for i := range p.count {
		e := p.element(i)
		if e.isBucket() {
			continue
		}
		if !c.f.usable(p, e) || !c.readEntry(p, off, e) {
			c.report.SkippedEntries++
			continue
		}
		c.report.Entries++
		if first := c.report.Entries == yielded+1; !at.doubtful && (first || i == p.count-1) {
			c.sure(bucket, c.key)
		}
		if !c.yield(Entry{Bucket: bucket, Key: c.key, Value: c.value, Page: p.id, Doubtful: at.doubtful}) {
			return false
		}
	}
	if off >= 0 && c.report.Entries > yielded {
		c.report.Pages++
	}
	if off >= 0 && c.report.SkippedEntries == skipped {
		c.report.Whole.add(p.id)
	}
	if c.report.SkippedEntries > skipped && !at.doubtful {
		c.missed(Gap{Bucket: slices.Clone(bucket), From: slices.Clone(at.lo), To: slices.Clone(at.hi)}, false)
	}
	return true
}

// readEntry copies key and value, so that the caller may do with them what it likes during the call.
func (c *collector) readEntry(p *page, off int64, e element) bool {
	key, value := resize(&c.key, e.ksize), resize(&c.value, e.vsize)
	if e.end() <= int64(len(p.head)) {
		copy(key, p.head[e.start:])
		copy(value, p.head[e.start+e.ksize:])
		return true
	}
	return c.rd.into(key, off+e.start) == nil && c.rd.into(value, off+e.start+e.ksize) == nil
}

// usable tells whether e can be read at all. The page's extent is no bound where the page is one of the file: the extent
// may be what is damaged.
func (f *File) usable(p *page, e element) bool {
	end := f.size - f.offset(p.id)
	if p.inline {
		end = int64(len(p.head))
	}
	return e.ksize > 0 && e.ksize <= maxKeySize && e.vsize <= max(f.MaxValue, f.pageSize) && e.start >= p.dataStart() && e.end() <= end
}
