package pagefile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
)

// crafted is a database made by hand, for what bbolt would never write.
type crafted struct {
	data     []byte
	pageSize int
}

func craft(pageSize, pages int) *crafted {
	return &crafted{data: make([]byte, pageSize*pages), pageSize: pageSize}
}

func (c *crafted) page(id uint64) []byte { return c.data[int(id)*c.pageSize:] }

func (c *crafted) header(id uint64, flags uint16, count int, overflow uint32) []byte {
	p := c.page(id)
	order.PutUint64(p, id)
	order.PutUint16(p[8:], flags)
	order.PutUint16(p[10:], uint16(count))
	order.PutUint32(p[12:], overflow)
	return p
}

// meta writes both meta pages.
func (c *crafted) meta(root, freelist uint64) *crafted {
	for n := range uint64(2) {
		m := c.header(n, flagMeta, 0, 0)[headerSize:]
		order.PutUint32(m, metaMagic)
		order.PutUint32(m[4:], metaVersion)
		order.PutUint32(m[8:], uint32(c.pageSize))
		order.PutUint64(m[16:], root)
		order.PutUint64(m[32:], freelist)
		order.PutUint64(m[40:], uint64(len(c.data)/c.pageSize))
		order.PutUint64(m[48:], n)
		c.seal(n)
	}
	return c
}

// seal makes the checksum of a meta page right.
func (c *crafted) seal(n uint64) {
	m := c.page(n)[headerSize:]
	sum := fnv.New64a()
	sum.Write(m[:metaSumAt])
	order.PutUint64(m[metaSumAt:], sum.Sum64())
}

// branch writes a branch page with one-byte keys from 'a' on.
func (c *crafted) branch(id uint64, children ...uint64) {
	p := c.header(id, flagBranch, len(children), 0)
	data := headerSize + elementSize*len(children)
	for i, child := range children {
		at := headerSize + elementSize*i
		order.PutUint32(p[at:], uint32(data+i-at))
		order.PutUint32(p[at+4:], 1)
		order.PutUint64(p[at+8:], child)
		p[data+i] = 'a' + byte(i)
	}
}

// leaf writes a leaf page with one entry.
func (c *crafted) leaf(id uint64, flags uint32, key, value string) {
	p := c.header(id, flagLeaf, 1, uint32((headerSize+elementSize+len(key)+len(value)-1)/c.pageSize))
	order.PutUint32(p[headerSize:], flags)
	order.PutUint32(p[headerSize+4:], elementSize)
	order.PutUint32(p[headerSize+8:], uint32(len(key)))
	order.PutUint32(p[headerSize+12:], uint32(len(value)))
	copy(p[headerSize+elementSize:], key+value)
}

func bucketAt(root uint64) string {
	value := make([]byte, bucketSize)
	order.PutUint64(value, root)
	return string(value)
}

// sound is a crafted database without a fault: a bucket on page 3 with two leaf pages, and a list of one free page.
func sound() *crafted {
	c := craft(1024, 8).meta(2, 6)
	c.leaf(2, elementBucket, "bucket", bucketAt(3))
	c.branch(3, 4, 5)
	c.leaf(4, 0, "a", "first")
	c.leaf(5, 0, "b", "second")
	order.PutUint64(c.header(6, flagFreelist, 1, 0)[headerSize:], 7)
	return c
}

// faults are what can be wrong with the crafted database, and what Verify has to say about it.
var faults = map[string]struct {
	damage func(c *crafted)
	page   uint64
	what   string
}{
	"branch refers to itself":  {func(c *crafted) { c.branch(3, 3, 5) }, 3, "referred to twice"},
	"cycle through a bucket":   {func(c *crafted) { c.leaf(4, elementBucket, "a", bucketAt(3)) }, 3, "referred to twice"},
	"two parents":              {func(c *crafted) { c.branch(3, 4, 4) }, 4, "referred to twice"},
	"child beyond the file":    {func(c *crafted) { c.branch(3, 4, 8) }, 3, "refers to page 8"},
	"child is a meta page":     {func(c *crafted) { c.branch(3, 1, 5) }, 3, "refers to page 1"},
	"child number of all ones": {func(c *crafted) { c.branch(3, 4, ^uint64(0)) }, 3, "refers to page 18446744073709551615"},
	"root beyond the file":     {func(c *crafted) { c.meta(8, 6) }, 1, "refers to page 8"},
	"root is no tree page":     {func(c *crafted) { c.meta(6, noFreelist) }, 6, "no page of a tree"},
	"wrong number":             {func(c *crafted) { c.page(4)[0] = 5 }, 4, "says that it is page 5"},
	"two types at once":        {func(c *crafted) { c.page(4)[8] = flagLeaf | flagBranch }, 4, "flags 0x3"},
	"huge count":               {func(c *crafted) { order.PutUint16(c.page(4)[10:], 0xFFFF) }, 4, "no room for the 65535 entries"},
	"count gone":               {func(c *crafted) { c.page(4)[10] = 0 }, 4, "no entries"},
	"count gone at the root":   {func(c *crafted) { c.page(2)[10] = 0 }, 2, "says that it has no entries, and has some"},
	"empty with overflow":      {func(c *crafted) { clear(c.page(2)[8:1024]); c.header(2, flagLeaf, 0, 2) }, 2, "and yet 2 overflow"},
	"huge overflow":            {func(c *crafted) { order.PutUint32(c.page(4)[12:], ^uint32(0)) }, 4, "beyond the last page"},
	"overflow into a page":     {func(c *crafted) { c.page(4)[12] = 1 }, 4, "overflow of 1 pages does not fit"},
	"page within an overflow": {func(c *crafted) {
		c.leaf(4, 0, "a", strings.Repeat("x", 1500))
		c.leaf(5, 0, "b", "second")
	}, 5, "referred to twice"},
	"empty key":            {func(c *crafted) { c.leaf(4, 0, "", "first") }, 4, "empty key"},
	"key too long":         {func(c *crafted) { order.PutUint32(c.page(4)[24:], maxKeySize+1) }, 4, "impossible key length"},
	"value too long":       {func(c *crafted) { order.PutUint32(c.page(4)[28:], 5000) }, 4, "beyond the page"},
	"a gap before the key": {func(c *crafted) { c.page(4)[20]++ }, 4, "does not begin where"},
	"unknown flags":        {func(c *crafted) { c.leaf(4, 2, "a", "first") }, 4, "unknown flags"},
	"key too small":        {func(c *crafted) { c.leaf(5, 0, "a", "second") }, 5, "belongs to an earlier page"},
	"key too large":        {func(c *crafted) { c.leaf(4, 0, "b", "first") }, 4, "belongs to a later page"},
	"keys out of order":    {func(c *crafted) { c.page(3)[headerSize+2*elementSize] = 'z' }, 3, "not in key order"},
	"value at the top":     {func(c *crafted) { c.leaf(2, 0, "bucket", bucketAt(3)) }, 2, "not a bucket"},
	"bucket too short":     {func(c *crafted) { c.leaf(2, elementBucket, "bucket", "short") }, 2, "too short for a bucket"},
	"bucket far too long": {func(c *crafted) { c.leaf(4, elementBucket, "a", strings.Repeat("x", 990)) }, 4,
		"refers to page 8680820740569200760"},
	"list of nothing":       {func(c *crafted) { c.meta(2, 7) }, 7, "says that it is page 0"},
	"list is a tree page":   {func(c *crafted) { c.meta(2, 4) }, 4, "no list of free pages"},
	"list beyond the file":  {func(c *crafted) { c.meta(2, 9) }, 1, "refers to page 9 for the free pages"},
	"page in use is free":   {func(c *crafted) { c.page(6)[headerSize] = 4 }, 6, "page 4 is listed as free"},
	"list frees itself":     {func(c *crafted) { c.page(6)[headerSize] = 6 }, 6, "page 6 is listed as free"},
	"free page twice":       {func(c *crafted) { c.page(6)[10] = 2; c.page(6)[headerSize+8] = 7 }, 6, "ascending"},
	"free beyond the file":  {func(c *crafted) { c.page(6)[headerSize] = 8 }, 6, "ascending"},
	"list longer than page": {func(c *crafted) { c.page(6)[10] = 200 }, 6, "no room for the 200"},
	"list of huge length": {func(c *crafted) {
		order.PutUint16(c.page(6)[10:], longList)
		order.PutUint64(c.page(6)[headerSize:], ^uint64(0))
	}, 6, "no room for the 18446744073709551615"},
	"list with overflow": {func(c *crafted) { c.page(6)[12] = 9 }, 6, "beyond the last page"},
}

func TestFaults(t *testing.T) {
	for name, tc := range faults {
		t.Run(name, func(t *testing.T) {
			c := sound()
			tc.damage(c)
			err := survive(t, c.data)
			fault, ok := errors.AsType[*DamageError](err)
			if !ok {
				t.Fatalf("Verify = %v, want a DamageError", err)
			}
			if fault.Page != tc.page || !strings.Contains(fault.What, tc.what) {
				t.Errorf("Verify = %v, want page %d: … %s …", err, tc.page, tc.what)
			}
		})
	}
}

func TestSoundCraft(t *testing.T) {
	if err := judge(t, sound().data); err != nil {
		t.Fatal(err)
	}
	free, err := mustOpen(t, sound().data).FreePages()
	if err != nil || free.Len() != 1 || !free.Has(7) || free.Has(1<<40) {
		t.Errorf("FreePages = %d pages, %v", free.Len(), err)
	}
	if free, err := mustOpen(t, craft(1024, 8).meta(2, noFreelist).data).FreePages(); free.Len() != 0 || free.Has(7) || err != nil {
		t.Errorf("FreePages of no list = %d pages, %v", free.Len(), err)
	}
}

func TestInlineBucketFaults(t *testing.T) {
	inner := func(flags uint16, count int, rest string) string {
		c := craft(1024, 1)
		return string(make([]byte, bucketSize)) + string(c.header(0, flags, count, 0)[:headerSize]) + rest
	}
	c := craft(1024, 1)
	c.leaf(0, 0, "k", "v")
	entry := string(c.data[headerSize : headerSize+elementSize+2])
	c.leaf(0, elementBucket, "k", bucketAt(5))
	bucket := string(c.data[headerSize : headerSize+elementSize+1+bucketSize])
	for name, tc := range map[string]struct {
		value, what string
	}{
		"sound":             {inner(flagLeaf, 1, entry), ""},
		"sound and empty":   {inner(flagLeaf, 0, ""), ""},
		"without a page":    {bucketAt(0), "cut short"},
		"a branch page":     {inner(flagBranch, 1, entry), "flags 0x1"},
		"huge count":        {inner(flagLeaf, 60000, entry), "no room for the 60000"},
		"longer than it is": {inner(flagLeaf, 1, entry+"x"), "of which it uses"},
		"empty with a rest": {inner(flagLeaf, 0, "x"), "no entries, and has some"},
		"reaching out":      {inner(flagLeaf, 1, entry[:len(entry)-1]), "beyond the page"},
		"a bucket within":   {inner(flagLeaf, 1, bucket), "holds another bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sound()
			c.leaf(4, elementBucket, "a", tc.value)
			err := judge(t, c.data)
			if tc.what == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			fault, ok := errors.AsType[*DamageError](err)
			if !ok || fault.Page != 4 || !strings.Contains(fault.What, tc.what) {
				t.Errorf("Verify = %v, want page 4: … %s …", err, tc.what)
			}
		})
	}
}

// Trees of any depth end: with a fault, not with all the memory.
func TestDeepNesting(t *testing.T) {
	const pages = 3000
	for name, next := range map[string]func(c *crafted, id uint64){
		"branches": func(c *crafted, id uint64) { c.branch(id, id+1) },
		"buckets":  func(c *crafted, id uint64) { c.leaf(id, elementBucket, "k", bucketAt(id+1)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := craft(1024, pages).meta(2, noFreelist)
			for id := uint64(2); id < pages-1; id++ {
				next(c, id)
			}
			c.leaf(pages-1, 0, "k", "v")
			if err := survive(t, c.data); err == nil || !strings.Contains(err.Error(), "nested deeper") {
				t.Errorf("Verify = %v", err)
			}
			report, err := mustOpen(t, c.data).Scan(t.Context(), nil, func(Entry) bool { return true })
			if err != nil || report.Entries != 1 {
				t.Errorf("Scan: %v, %+v", err, report)
			}
		})
	}
}

// Every page claims to hold almost all of the file. survive checks what is read for it.
func TestOverlappingClaims(t *testing.T) {
	const pages = 4000
	c := craft(1024, pages).meta(2, noFreelist)
	c.branch(2, 3)
	for id := uint64(3); id < pages; id++ {
		c.header(id, flagLeaf, 1, uint32(pages-id-1))
		p := c.page(id)[headerSize:]
		order.PutUint32(p[4:], elementSize)
		order.PutUint32(p[8:], 1)
		order.PutUint32(p[12:], uint32((pages-id)*1024-headerSize-elementSize-1))
		p[elementSize] = 'k'
	}
	if err := survive(t, c.data); err == nil {
		t.Error("Verify passes it")
	}
	f := mustOpen(t, c.data)
	report, err := f.Scan(t.Context(), nil, func(Entry) bool { return true })
	if err != nil || report.SkippedEntries == 0 || report.Entries < budgetFactor {
		t.Errorf("Scan: %v, %+v", err, report)
	}
	f.MaxValue = 100 << 10
	report, err = f.Scan(t.Context(), nil, func(e Entry) bool { return len(e.Value) <= 100<<10 })
	if err != nil || report.Entries < 50 || report.Entries > 101 {
		t.Errorf("Scan with MaxValue: %v, %+v", err, report)
	}
}

func TestDamageErrorText(t *testing.T) {
	for want, err := range map[string]*DamageError{
		"page 7: it is 3":                       damage(7, "it is %d", 3),
		"page 7: it is: the file was cut short": {Page: 7, What: "it is", Err: ErrTruncated},
	} {
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A list of more than 65,534 free pages has its length elsewhere.
func TestLongFreelist(t *testing.T) {
	const pages, listed = 70_000, 69_000
	c := craft(1024, pages).meta(2, 10)
	c.header(2, flagLeaf, 0, 0)
	list := c.header(10, flagFreelist, longList, (listed+3)*pageIDSize/1024)[headerSize:]
	order.PutUint64(list, listed)
	for i := range uint64(listed) {
		order.PutUint64(list[pageIDSize*(i+1):], pages-listed+i)
	}
	f := mustOpen(t, c.data)
	if err := f.Verify(t.Context()); err != nil {
		t.Errorf("Verify: %v", err)
	}
	if free, err := f.FreePages(); err != nil || free.Len() != listed || free.Has(pages-listed-1) || !free.Has(pages-1) {
		t.Errorf("FreePages: %d pages, %v", free.Len(), err)
	}
	order.PutUint64(list[pageIDSize*listed:], 5)
	if err := f.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "ascending") {
		t.Errorf("Verify of a list that is wrong at its end = %v", err)
	}
	order.PutUint64(list, listed+10_000)
	if _, err := f.FreePages(); err == nil {
		t.Error("FreePages reads a list that has no room")
	}
}
