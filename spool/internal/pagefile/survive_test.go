package pagefile

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// meter counts what is read, since that is what time and memory come from.
type meter struct {
	r     io.ReaderAt
	bytes int64
}

func (m *meter) ReadAt(b []byte, off int64) (int, error) {
	m.bytes += int64(len(b))
	return m.r.ReadAt(b, off)
}

// survive reads data in every way and checks what must hold for any bytes: no panic, no more reading than a small
// multiple of the file, nothing yielded that is not in the file. It returns Verify's error, or Open's.
func survive(t testing.TB, data []byte) error {
	t.Helper()
	m := &meter{r: bytes.NewReader(data)}
	f, err := newFile(m, int64(len(data)))
	if err != nil {
		return err
	}
	limit := (budgetFactor+gapPages+2)*f.size + 20*readAhead
	within := func(what string) {
		t.Helper()
		if m.bytes > limit {
			t.Errorf("%s read %d bytes of a file of %d", what, m.bytes, f.size)
		}
		m.bytes = 0
	}
	within("Open")
	verdict := f.Verify(t.Context())
	within("Verify")
	check := func(e Entry) bool {
		if len(e.Key) == 0 || len(e.Key) > maxKeySize || int64(len(e.Key)+len(e.Value)) > f.size || e.Page >= f.pages {
			t.Errorf("page %d gives a key of %d and a value of %d bytes", e.Page, len(e.Key), len(e.Value))
		}
		return true
	}
	report, err := f.Walk(t.Context(), check)
	within("Walk")
	if err != nil {
		t.Errorf("Walk: %v", err)
	}
	if verdict == nil && (report.First != nil || report.SkippedEntries > 0) {
		t.Errorf("Verify found nothing, and Walk %v and %d entries it could not read", report.First, report.SkippedEntries)
	}
	if _, err := f.Scan(t.Context(), report.Whole, check); err != nil {
		t.Errorf("Scan: %v", err)
	}
	within("Scan")
	_, _ = f.FreePages()
	within("FreePages")
	return verdict
}

// requireUsable hands the file to bbolt and uses all of it: whatever Verify passes must not make bbolt panic, which would
// end this test, since bbolt panics in goroutines of its own too.
func requireUsable(t testing.TB, data []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mutant.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoSync: true, NoGrowSync: true, NoFreelistSync: true})
	if err != nil {
		t.Fatalf("bbolt does not open what Verify passed: %v", err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error { return collectRoot(tx, contents{}) })
	if err != nil {
		t.Fatalf("bbolt cannot read what Verify passed: %v", err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return rewrite(b) })
	})
	if err != nil {
		t.Fatalf("bbolt cannot write to what Verify passed: %v", err)
	}
}

// rewrite deletes every third entry of b and replaces the others.
func rewrite(b *bbolt.Bucket) error {
	var keys [][]byte
	if err := b.ForEach(func(k, v []byte) error {
		if v == nil {
			return rewrite(b.Bucket(k))
		}
		keys = append(keys, bytes.Clone(k))
		return nil
	}); err != nil {
		return err
	}
	for i, k := range keys {
		if i%3 == 0 {
			if err := b.Delete(k); err != nil {
				return err
			}
		} else if err := b.Put(k, []byte("rewritten")); err != nil {
			return err
		}
	}
	return nil
}

// judge is survive, and bbolt's opinion where Verify passes the data.
func judge(t testing.TB, data []byte) error {
	t.Helper()
	err := survive(t, data)
	if err == nil {
		requireUsable(t, data)
	}
	return err
}

func TestRandomDamage(t *testing.T) {
	const seeds = 200 / raceDivisor
	for name, d := range databases() {
		t.Run(name, func(t *testing.T) {
			image, _ := d.image(t)
			for seed := range uint64(seeds) {
				rnd := rand.New(rand.NewPCG(seed, 7))
				data := bytes.Clone(image)
				what := mutate(rnd, data, d.actualPageSize())
				if err := survive(t, data); err == nil && seed%4 == 0 {
					requireUsable(t, data) // the slow part
				}
				if t.Failed() {
					t.Fatalf("seed %d: %s", seed, what)
				}
			}
		})
	}
}

func (d database) actualPageSize() int {
	if d.pageSize == 0 {
		return os.Getpagesize()
	}
	return d.pageSize
}

// mutate damages data in one of the ways that disks, filesystems and people do.
func mutate(rnd *rand.Rand, data []byte, pageSize int) string {
	pages := len(data) / pageSize
	page := func() []byte { return data[rnd.IntN(pages)*pageSize:][:pageSize] }
	switch rnd.IntN(6) {
	case 0: // one bit anywhere
		data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
		return "a flipped bit"
	case 1: // bits where the structure is
		for range 1 + rnd.IntN(3) {
			page()[rnd.IntN(headerSize+4*elementSize)] ^= 1 << rnd.IntN(8)
		}
		return "flipped bits at the beginning of pages"
	case 2:
		copy(page(), page())
		return "a page copied over another"
	case 3:
		b := page()
		for i := range b {
			b[i] = 0xFF
		}
		return "FF over a page"
	case 4:
		clear(page()[rnd.IntN(pageSize)/512*512:])
		return "the rest of a page zeroed"
	default:
		b := page()
		b = b[:rnd.IntN(len(b))+1]
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return "random bytes at the beginning of a page"
	}
}
