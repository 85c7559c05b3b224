package pagefile

import "encoding/binary"

// The layout of bbolt's pages, in the byte order of the machine that wrote them, as bbolt itself has it.
//
//	page:           id u64, flags u16, count u16, overflow u32; then count elements; then their keys and values
//	leaf element:   flags u32, pos u32, ksize u32, vsize u32; pos counts from the start of the element
//	branch element: pos u32, ksize u32, page u64
//	bucket:         root page u64, sequence u64; where root is 0, a whole leaf page follows (an inline bucket)
//
// Keys and values are packed: each element's begin where those of the one before end, without a gap, and the first ones
// right behind the last element. bbolt has never written them in another way, and it makes most flipped bits show.
const (
	headerSize  = 16
	elementSize = 16
	bucketSize  = 16

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10

	// elementBucket marks a leaf element whose value is a bucket.
	elementBucket = 0x01

	// maxKeySize is bbolt's own limit.
	maxKeySize = 32768

	// minPageSize and maxPageSize are the sizes among which bbolt looks for its second meta page: powers of two.
	minPageSize = 1 << 10
	maxPageSize = 16 << 20
)

var order = binary.NativeEndian

// page is one page, or the page within an inline bucket.
type page struct {
	id       uint64
	flags    uint16
	count    int
	overflow uint32
	// head is what is at hand: the first page-size bytes (fewer at a cut end), or all of an inline page.
	head []byte
	// extent is how many bytes the page says it has, overflow included.
	extent int64
	// inline tells that the page is that of an inline bucket: id is then the page which that is a part of.
	inline bool
}

// parsePage reads the header of head, which has headerSize bytes at least.
func parsePage(head []byte, pageSize int64) page {
	p := page{
		id:       order.Uint64(head),
		flags:    order.Uint16(head[8:]),
		count:    int(order.Uint16(head[10:])),
		overflow: order.Uint32(head[12:]),
		head:     head,
	}
	p.extent = (int64(p.overflow) + 1) * pageSize
	return p
}

func (p *page) isBranch() bool { return p.flags == flagBranch }
func (p *page) isLeaf() bool   { return p.flags == flagLeaf }

// dataStart is where the first key of an undamaged page begins.
func (p *page) dataStart() int64 { return headerSize + elementSize*int64(p.count) }

// element is one entry of a page; start and the sizes are in bytes, start from the beginning of the page.
type element struct {
	start, ksize, vsize int64
	flags               uint32 // of a leaf element
	child               uint64 // of a branch element
}

func (e element) end() int64 { return e.start + e.ksize + e.vsize }

func (e element) isBucket() bool { return e.flags == elementBucket }

// element reads the i-th element, which must lie within head.
func (p *page) element(i int) element {
	at := headerSize + elementSize*i
	b := p.head[at : at+elementSize]
	if p.isBranch() {
		return element{
			start: int64(at) + int64(order.Uint32(b)),
			ksize: int64(order.Uint32(b[4:])),
			child: order.Uint64(b[8:]),
		}
	}
	return element{
		flags: order.Uint32(b),
		start: int64(at) + int64(order.Uint32(b[4:])),
		ksize: int64(order.Uint32(b[8:])),
		vsize: int64(order.Uint32(b[12:])),
	}
}

// tableFits tells whether all elements lie within head. bbolt splits a page with more than four entries until it fits
// one page-size, so that in a file of its own they always do.
func (p *page) tableFits() bool { return p.dataStart() <= int64(len(p.head)) }

// readable returns how many elements can be read from head, whatever count says.
func (p *page) readable() int {
	return min(p.count, max(0, (len(p.head)-headerSize)/elementSize))
}
