package pagefile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"
)

// layout tells what each page of a whole database is, as Walk sees it.
type layout struct {
	root    uint64
	used    map[uint64]*page    // pages of the tree
	entries map[uint64]contents // by leaf page
	over    map[uint64]uint64   // overflow page to its first page
}

func layoutOf(t testing.TB, data []byte) layout {
	t.Helper()
	f := mustOpen(t, data)
	n, _ := newest(f.metas)
	root := root{page: f.metas[n].root, from: uint64(n)}
	l := layout{root: root.page, used: map[uint64]*page{}, entries: map[uint64]contents{}, over: map[uint64]uint64{}}
	tr := f.newTraversal(t.Context())
	tr.report = func(d *DamageError) bool { t.Fatalf("a whole database: %v", d); return false }
	tr.emit = func(*page, int64, [][]byte, place) bool { return true }
	tr.file(root)
	for id := range f.pages {
		if !tr.seen.Has(id) {
			continue
		}
		p := parsePage(data[f.offset(id):][:f.pageSize], f.pageSize)
		l.used[id] = &p
		for i := range uint64(p.overflow) {
			l.over[id+1+i] = id
		}
	}
	_, err := f.Walk(t.Context(), func(e Entry) bool {
		if l.entries[e.Page] == nil {
			l.entries[e.Page] = contents{}
		}
		l.entries[e.Page].add(e.Bucket, e.Key, e.Value)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (p *page) inLastLengths(at int64) bool {
	lengths := p.dataStart() - 8
	if p.isBranch() {
		return at >= lengths-4 && at < lengths
	}
	return at >= lengths
}

// isBucketMark tells whether the bit says that an element is a bucket.
func (p *page) isBucketMark(bit int64) bool {
	i := int(bit/8-headerSize) / elementSize
	return p.isLeaf() && bit >= 8*headerSize && p.element(i).isBucket() && bit == 8*(headerSize+elementSize*int64(i))
}

func (p *page) hasBuckets() bool {
	for i := range p.count {
		if p.isLeaf() && p.element(i).isBucket() {
			return true
		}
	}
	return false
}

// Every single flipped bit in what bbolt steers by must be found: it would act on it. The lengths of a page's last entry
// are one exception: nothing stands behind it that could contradict, and a wrong value is for the record's checksum. The
// mark of a nested bucket is the other one.
func TestEveryFlippedBitOfTheStructureIsFound(t *testing.T) {
	for _, name := range []string{"two levels", "some overflow", "nested", "stale pages"} {
		t.Run(name, func(t *testing.T) {
			data, _ := databases()[name].image(t)
			pageSize := databases()[name].actualPageSize()
			sampled := map[uint16]int{}
			l := layoutOf(t, data)
			for _, id := range slices.Sorted(maps.Keys(l.used)) {
				p := l.used[id]
				if sampled[p.flags]++; sampled[p.flags] > 1 {
					continue
				}
				for bit := range 8 * p.dataStart() {
					if at := bit/8 - headerSize; at > 3*elementSize && at < p.dataStart()-headerSize-2*elementSize {
						continue // the first and the last entries stand for those between
					}
					if p.inLastLengths(bit/8) || id != l.root && p.isBucketMark(bit) {
						continue
					}
					at := int64(id)*int64(pageSize) + bit/8
					data[at] ^= 1 << (bit % 8)
					err := mustOpen(t, data).Verify(t.Context())
					if _, ok := errors.AsType[*DamageError](err); !ok {
						t.Fatalf("page %d of %d entries, byte %d bit %d: Verify = %v", id, p.count, bit/8, bit%8, err)
					}
					data[at] ^= 1 << (bit % 8)
				}
			}
		})
	}
}

// A page lost to the disk must cost its own entries and nothing else.
func TestOneLostPage(t *testing.T) {
	for name, d := range databases() {
		t.Run(name, func(t *testing.T) {
			image, want := d.image(t)
			l := layoutOf(t, image)
			pages := uint64(len(image) / d.actualPageSize())
			for id := uint64(0); id < pages; id += 1 + pages*raceDivisor/60 {
				data := bytes.Clone(image)
				damaged := data[int(id)*d.actualPageSize():][:d.actualPageSize()]
				for i := range damaged {
					damaged[i] = 0xFF
				}
				checkLostPage(t, data, id, l, want)
			}
		})
	}
}

func checkLostPage(t *testing.T, data []byte, id uint64, l layout, want contents) {
	t.Helper()
	f := mustOpen(t, data)
	lost := l.entries[id]
	if first, ok := l.over[id]; ok {
		lost = l.entries[first] // their values are spoilt
	}
	p, used := l.used[id]
	if err := f.Verify(t.Context()); used && err == nil {
		t.Fatalf("Verify passes the file without page %d", id)
	}
	sure, doubtful, report := walkAll(t, f)
	if used && (report.First == nil || report.First.Page != id || report.DamagedPages == 0) {
		t.Fatalf("page %d is lost, and the report says %+v", id, report)
	}
	if id > 1 && (!used || !p.isBranch() && !p.hasBuckets()) {
		// Nothing hangs from this page: everything else is found, in its bucket and beyond doubt.
		for key, value := range want {
			if _, gone := lost[key]; !gone && sure[key] != value {
				t.Fatalf("page %d is lost, and with it an entry of another page", id)
			}
		}
	}
	if id > 1 { // the other meta page may lead to another state
		checkGaps(t, id, sure, want, report)
	}
	byKey := map[string]bool{}
	note := func(c contents) {
		for k, v := range c {
			byKey[k[strings.LastIndex(k, "/"):]+v] = true
		}
	}
	note(sure)
	note(doubtful)
	scanned := contents{}
	if _, err := f.Scan(t.Context(), report.Whole, func(e Entry) bool {
		byKey[fmt.Sprintf("/%x%s", e.Key, e.Value)] = true
		scanned.add(e.Bucket, e.Key, e.Value)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for key, value := range want {
		if _, gone := lost[key]; !gone && !byKey[key[strings.LastIndex(key, "/"):]+value] {
			t.Fatalf("page %d is lost, and an entry of another page is nowhere to be found", id)
		}
	}
}

// checkGaps: what a walk has not yielded for sure lies in one of its gaps, and what it has yielded in none.
func checkGaps(t *testing.T, id uint64, sure, want contents, report Report) {
	t.Helper()
	for key := range want {
		_, have := sure[key]
		at := strings.LastIndex(key, "/")
		var bare []byte
		fmt.Sscanf(key[at+1:], "%x", &bare)
		if missed := report.missed(append(bytes.Split([]byte(key[:at]), []byte("/")), bare)); have == missed {
			t.Fatalf("page %d is lost; yielded for sure: %v, and in a gap: %v", id, have, missed)
		}
	}
}

// missed tells whether an entry lies in a gap. path has the names of its buckets and then its key.
func (r *Report) missed(path [][]byte) bool {
	if !slices.ContainsFunc(r.Buckets, func(name []byte) bool { return bytes.Equal(name, path[0]) }) {
		return true
	}
	for _, g := range r.Gaps {
		n := len(g.Bucket)
		if n >= len(path) || !slices.EqualFunc(g.Bucket, path[:n], bytes.Equal) {
			continue
		}
		if key := path[n]; bytes.Compare(key, g.From) >= 0 && (g.To == nil || bytes.Compare(key, g.To) < 0) {
			return true
		}
	}
	return false
}

// A meta page of an earlier time leads to pages that were used for something else since. Where one of them has to do with a
// page that was not there at that time, nothing of it is sure.
func TestOlderMetaPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	fill := func(n int) (image []byte) {
		for i := range n {
			if err := db.Update(func(tx *bbolt.Tx) error {
				b, err := tx.CreateBucketIfNotExists([]byte("b"))
				if err != nil {
					return err
				}
				return b.Put(fmt.Appendf(nil, "%08d", i), make([]byte, 100))
			}); err != nil {
				t.Fatal(err)
			}
		}
		if image, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		return image
	}
	early := fill(100)
	late := fill(2000)
	if _, _, report := walkAll(t, mustOpen(t, late)); report.First != nil || len(report.Gaps) > 0 {
		t.Fatalf("as it is: %+v", report)
	}
	copy(late, early[:2*os.Getpagesize()])
	f := mustOpen(t, late)
	if err := f.Verify(t.Context()); err == nil {
		t.Fatal("Verify passes it")
	}
	if sure, _, report := walkAll(t, f); len(sure) > 0 || len(report.Gaps) != 1 || len(report.Gaps[0].Bucket) > 0 {
		t.Errorf("%d are sure; %+v", len(sure), report)
	}
}

func TestWithoutMetaPages(t *testing.T) {
	for name, d := range databases() {
		t.Run(name, func(t *testing.T) {
			data, want := d.image(t)
			clear(data[:2*d.actualPageSize()])
			f := mustOpen(t, data)
			if f.PageSize() != d.actualPageSize() {
				t.Fatalf("page size %d, want %d", f.PageSize(), d.actualPageSize())
			}
			err := f.Verify(t.Context())
			if d, ok := errors.AsType[*DamageError](err); !ok || d.Page != 0 {
				t.Errorf("Verify = %v", err)
			}
			if sure, doubtful, report := walkAll(t, f); len(sure)+len(doubtful) > 0 || report.First == nil {
				t.Errorf("Walk without a root: %d entries, %+v", len(sure)+len(doubtful), report)
			}
			found := contents{}
			if _, err := f.Scan(t.Context(), nil, func(e Entry) bool { found.add(nil, e.Key, e.Value); return true }); err != nil {
				t.Fatal(err)
			}
			for k := range want {
				if _, ok := found[k[strings.LastIndex(k, "/"):]]; !ok {
					t.Fatalf("Scan found %d keys of %d", len(found), len(want))
				}
			}
		})
	}
}

func TestOneBadMetaPage(t *testing.T) {
	image, want := databases()["two levels"].image(t)
	older, newer := contents{}, want
	newest, _ := newest(mustOpen(t, image).metas)
	for bad := range 2 {
		data := bytes.Clone(image)
		data[bad*os.Getpagesize()+headerSize+17] ^= 4
		f := mustOpen(t, data)
		if d := f.MetaDamage(); d == nil || d.Page != uint64(bad) {
			t.Errorf("MetaDamage = %v, want it of page %d", d, bad)
		}
		if err := f.Verify(t.Context()); err != nil {
			t.Errorf("without meta page %d Verify = %v; bbolt would use the other one", bad, err)
		}
		sure, doubtful, _ := walkAll(t, f)
		expect := newer
		if bad == newest {
			expect = older // the state of one commit before: nothing yet
		}
		requireSame(t, sure, expect)
		if len(doubtful) > 0 {
			t.Errorf("%d doubtful entries", len(doubtful))
		}
	}
}

// A meta page whose checksum alone is wrong still leads to everything, if there is no better one.
func TestMetaPagesWithWrongChecksums(t *testing.T) {
	image, want := databases()["nested"].image(t)
	for n := range 2 {
		image[n*os.Getpagesize()+headerSize+metaSumAt] ^= 1
	}
	f := mustOpen(t, image)
	if err := f.Verify(t.Context()); err == nil {
		t.Error("Verify passes it")
	}
	sure, doubtful, _ := walkAll(t, f)
	if len(sure) > 0 {
		t.Errorf("%d entries are said to be certain", len(sure))
	}
	requireSame(t, doubtful, want)
}

// Where the newest root is lost, the one before leads to what was there one commit earlier.
func TestOlderRoot(t *testing.T) {
	d := databases()["stale pages"]
	data, want := d.image(t)
	f := mustOpen(t, data)
	n, _ := newest(f.metas)
	clear(data[f.offset(f.metas[n].root):][:f.pageSize])
	sure, doubtful, report := walkAll(t, mustOpen(t, data))
	if len(sure) > 0 || report.First == nil || report.First.Page != f.metas[n].root {
		t.Errorf("%d certain entries, report %+v", len(sure), report)
	}
	kept := maps.Clone(doubtful)
	maps.DeleteFunc(kept, func(k, _ string) bool { _, ok := want[k]; return !ok })
	if len(kept) < len(want)/2 {
		t.Errorf("the older root leads to %d of %d keys", len(kept), len(want))
	}
}

func TestTruncation(t *testing.T) {
	for name, d := range databases() {
		t.Run(name, func(t *testing.T) {
			image, want := d.image(t)
			pageSize := d.actualPageSize()
			for cut := 0; cut < len(image); cut += pageSize * (1 + len(image)*raceDivisor/pageSize/600) {
				checkTruncated(t, image[:cut], want)
				if cut/pageSize%4 < 2 {
					checkTruncated(t, image[:cut+1+cut*7%(pageSize-1)], want)
				}
			}
		})
	}
}

func checkTruncated(t *testing.T, data []byte, want contents) {
	t.Helper()
	err := survive(t, data)
	if len(data) > headerSize+metaSize && !errors.Is(err, ErrTruncated) {
		t.Errorf("cut to %d bytes: %v, want ErrTruncated", len(data), err)
	}
	if err == nil {
		t.Fatalf("cut to %d bytes, and nobody sees it", len(data))
	}
	if len(data) <= headerSize+metaSize {
		return
	}
	sure, _, _ := walkAll(t, mustOpen(t, data))
	for k, v := range sure {
		if want[k] != v {
			t.Fatalf("cut to %d bytes: an entry beyond doubt is wrong", len(data))
		}
	}
}

// badDisk fails where the real one would: in sectors.
type badDisk struct {
	data   []byte
	lo, hi int64
}

func (d badDisk) ReadAt(b []byte, off int64) (int, error) {
	if off < d.hi && off+int64(len(b)) > d.lo {
		return 0, syscall.EIO
	}
	return bytes.NewReader(d.data).ReadAt(b, off)
}

func TestUnreadableSectors(t *testing.T) {
	d := databases()["two levels"]
	data, want := d.image(t)
	l := layoutOf(t, data)
	for id, p := range l.used {
		if p.isBranch() || p.hasBuckets() {
			continue
		}
		at := int64(id) * int64(d.actualPageSize())
		f, err := newFile(badDisk{data, at, at + 512}, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		err = f.Verify(t.Context())
		if fault, ok := errors.AsType[*DamageError](err); !ok || fault.Page != id || !errors.Is(err, syscall.EIO) {
			t.Fatalf("Verify = %v, want EIO of page %d", err, id)
		}
		sure, _, report := walkAll(t, f)
		if len(sure) != len(want)-len(l.entries[id]) || report.DamagedPages != 1 {
			t.Fatalf("page %d cannot be read: %d of %d entries, %+v", id, len(sure), len(want), report)
		}
		report, err = f.Scan(t.Context(), report.Whole, func(Entry) bool { return true })
		if err != nil || !errors.Is(report.First, syscall.EIO) {
			t.Fatalf("Scan: %v, %+v", err, report)
		}
	}
}

func TestOpenOfAnUnreadableBeginning(t *testing.T) {
	data, _ := databases()["two levels"].image(t)
	f, err := newFile(badDisk{data, 0, 2 * 4096}, int64(len(data)))
	if err != nil || f.PageSize() != os.Getpagesize() {
		t.Fatalf("open = %v", err)
	}
	path := filepath.Join(t.TempDir(), "absent")
	if _, err := Open(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open = %v, want ErrNotExist", err)
	}
}
