package pagefile

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// version is a database of another version: on both meta pages or on the first alone, with right checksums or not.
func version(v uint32, second, seal bool) []byte {
	c := sound()
	for n := range uint64(2) {
		if n == 1 && !second {
			clear(c.page(1)[:1024])
			continue
		}
		order.PutUint32(c.page(n)[headerSize+4:], v)
		if seal {
			c.seal(n)
		}
	}
	return c.data
}

type openCase struct {
	data []byte
	want error
}

func openCases(t *testing.T) map[string]openCase {
	image, _ := databases()["two levels"].image(t)
	random := make([]byte, 1<<16)
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	return map[string]openCase{
		"a database":                   {image, nil},
		"nothing":                      {nil, ErrEmpty},
		"one zero":                     {[]byte{0}, ErrBlank},
		"a page of zeros":              {make([]byte, 4096), ErrBlank},
		"many zeros":                   {make([]byte, 3<<20), ErrBlank},
		"text":                         {[]byte("key: value\n"), ErrForeign},
		"another program's":            {append([]byte("SQLite format 3\x00"), random...), ErrForeign},
		"random bytes":                 {random, ErrForeign},
		"zeros and a text":             {append(make([]byte, 2<<20), "text"...), ErrForeign},
		"10 bytes of a database":       {image[:10], ErrTruncated},
		"19 bytes of a database":       {image[:19], ErrTruncated},
		"the magic number and no more": {image[:20], ErrTruncated},
		"a version agreed upon":        {version(3, true, false), ErrVersion},
		"a version with a checksum":    {version(7, false, true), ErrVersion},
		"an old version":               {version(1, true, true), ErrVersion},
		"a flipped bit in a version":   {version(3, false, false), nil},
	}
}

func TestOpenTellsWhatItIsNot(t *testing.T) {
	for name, tc := range openCases(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, tc.data, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := Open(path)
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Fatalf("Open = %v, want %v", err, tc.want)
			}
			if err == nil {
				if f.Size() != int64(len(tc.data)) {
					t.Errorf("Size = %d", f.Size())
				}
				f.Close()
			}
		})
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrForeign) {
		t.Errorf("Open of a directory = %v, want ErrForeign", err)
	}
}

// The content of a database may be a database too: the numbers of those pages speak for another page size, or for none.
func TestSurveyIsNotMisledByContent(t *testing.T) {
	inner, _ := database{entries: 2000, valueSize: 100, pageSize: 1024}.image(t)
	outer, _ := databases()["three levels"].image(t)
	c := craft(4096, 300)
	for id := uint64(2); id < 300; id++ {
		if id < 200 {
			c.leaf(id, 0, "k", "v")
		} else {
			copy(c.page(id), inner[:4096])
			inner = inner[4096:]
		}
	}
	// What follows page 2 of a foreign file has number 2 where ours would have another one.
	if f := mustOpen(t, c.data); f.PageSize() != 4096 {
		t.Errorf("page size %d, want 4096", f.PageSize())
	}
	clear(outer[:2048])
	if f := mustOpen(t, outer); f.PageSize() != 1024 {
		t.Errorf("page size %d, want 1024", f.PageSize())
	}
}

func TestStopping(t *testing.T) {
	for _, name := range []string{"nested", "one inline", "three levels"} {
		data, want := databases()[name].image(t)
		f := mustOpen(t, data)
		for _, limit := range []int{1, 2, len(want) - 1} {
			n := 0
			stop := func(Entry) bool { n++; return n < limit }
			report, err := f.Walk(t.Context(), stop)
			if err != nil || n != limit || report.Entries != limit {
				t.Errorf("%s: Walk: %v; %d entries instead of %d", name, err, n, limit)
			}
			n = 0
			report, err = f.Scan(t.Context(), nil, stop)
			if err != nil || n != limit || report.Entries != limit {
				t.Errorf("%s: Scan: %v; %d entries instead of %d", name, err, n, limit)
			}
		}
	}
}

func TestCancelling(t *testing.T) {
	data, _ := databases()["nested"].image(t)
	f := mustOpen(t, data)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := f.Walk(ctx, func(Entry) bool {
		n++
		cancel()
		return true
	})
	if !errors.Is(err, context.Canceled) || n == 0 || n > 20 {
		t.Errorf("Walk = %v after %d entries", err, n)
	}
	if _, err := f.Scan(ctx, nil, func(Entry) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("Scan = %v", err)
	}
	if err := f.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify = %v", err)
	}
}

func TestWalkIsInKeyOrder(t *testing.T) {
	data, _ := databases()["keys in no order"].image(t)
	var keys [][]byte
	if _, err := mustOpen(t, data).Walk(t.Context(), func(e Entry) bool {
		keys = append(keys, bytes.Clone(e.Key))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) || len(keys) < 300 {
		t.Errorf("%d keys, not in order", len(keys))
	}
}
