package pagefile

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"
)

// database describes a bbolt file that a test makes.
type database struct {
	pageSize       int
	noFreelistSync bool
	entries        int // in the bucket "events"
	valueSize      int
	rounds         int // of deleting and writing again, so that free and stale pages exist
	nested         bool
	random         bool // keys in no order
}

// databases are small, and differ in everything that the format knows.
func databases() map[string]database {
	return map[string]database{
		"empty":            {},
		"one inline":       {entries: 3, valueSize: 20},
		"leaf root":        {entries: 20, valueSize: 40},
		"two levels":       {entries: 400, valueSize: 100},
		"three levels":     {entries: 1500, valueSize: 60, pageSize: 1024},
		"overflow":         {entries: 20, valueSize: 18000},
		"some overflow":    {entries: 60, valueSize: 1500},
		"large pages":      {entries: 500, valueSize: 300, pageSize: 65536},
		"nested":           {entries: 100, valueSize: 200, nested: true},
		"stale pages":      {entries: 300, valueSize: 300, rounds: 6, nested: true},
		"stale, no list":   {entries: 300, valueSize: 300, rounds: 6, nested: true, noFreelistSync: true},
		"keys in no order": {entries: 500, valueSize: 80, rounds: 2, random: true},
	}
}

// contents are all entries of a database: bucket names joined by slashes and the key, to the value.
type contents map[string]string

func (c contents) add(bucket [][]byte, key, value []byte) {
	c[fmt.Sprintf("%s/%x", bytes.Join(bucket, []byte("/")), key)] = string(value)
}

// build writes the database to a new file and returns what bbolt finds in it.
func (d database) build(t testing.TB) (string, contents) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: d.pageSize, NoFreelistSync: d.noFreelistSync, NoSync: true, NoGrowSync: true})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range d.rounds + 1 {
		if err := db.Update(func(tx *bbolt.Tx) error { return d.fill(tx, rnd, round) }); err != nil {
			t.Fatal(err)
		}
	}
	all := contents{}
	if err := db.View(func(tx *bbolt.Tx) error { return collectRoot(tx, all) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path, all
}

func (d database) fill(tx *bbolt.Tx, rnd *rand.Rand, round int) error {
	if d.entries == 0 {
		return nil
	}
	names := []string{"events"}
	if d.nested {
		names = append(names, "events/inner", "events/inner/innermost", "other")
		for i := range 10 {
			names = append(names, fmt.Sprintf("other/small-%d", i))
		}
	}
	for _, name := range names {
		b, err := openBucket(tx, name)
		if err != nil {
			return err
		}
		entries := d.entries
		if strings.Contains(name, "small") {
			entries = 2
		}
		for i := range entries {
			if round > 0 && rnd.IntN(3) > 0 {
				continue
			}
			if err := d.change(b, rnd, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// change writes one entry, or deletes it now and then.
func (d database) change(b *bbolt.Bucket, rnd *rand.Rand, i int) error {
	key := fmt.Appendf(nil, "key-%06d", i)
	if d.random {
		key = fmt.Appendf(nil, "%016x", uint64(i)*0x9E3779B97F4A7C15)
	}
	if d.rounds > 0 && rnd.IntN(5) == 0 {
		return b.Delete(key)
	}
	value := make([]byte, d.valueSize/2+rnd.IntN(d.valueSize+1))
	for j := range value {
		value[j] = byte(rnd.Uint32())
	}
	return b.Put(key, value)
}

func openBucket(tx *bbolt.Tx, name string) (*bbolt.Bucket, error) {
	var b *bbolt.Bucket
	var err error
	for i, part := range strings.Split(name, "/") {
		if i == 0 {
			b, err = tx.CreateBucketIfNotExists([]byte(part))
		} else {
			b, err = b.CreateBucketIfNotExists([]byte(part))
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

func collectRoot(tx *bbolt.Tx, all contents) error {
	return tx.ForEach(func(name []byte, b *bbolt.Bucket) error { return collectBucket(b, [][]byte{name}, all) })
}

func collectBucket(b *bbolt.Bucket, names [][]byte, all contents) error {
	return b.ForEach(func(k, v []byte) error {
		if v == nil {
			return collectBucket(b.Bucket(k), append(names[:len(names):len(names)], k), all)
		}
		all.add(names, k, v)
		return nil
	})
}

// image reads a built database into memory, where tests damage it, without the pages that bbolt has not used yet.
func (d database) image(t testing.TB) ([]byte, contents) {
	t.Helper()
	images.Lock()
	defer images.Unlock()
	made, ok := images.made[d]
	if !ok {
		made.data, made.all = d.makeImage(t)
		images.made[d] = made
	}
	return bytes.Clone(made.data), maps.Clone(made.all)
}

// images keeps what was built for the tests that follow; the mutex guards all of it.
var images = struct {
	sync.Mutex
	made map[database]madeImage
}{made: map[database]madeImage{}}

type madeImage struct {
	data []byte
	all  contents
}

func (d database) makeImage(t testing.TB) ([]byte, contents) {
	t.Helper()
	path, all := d.build(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := mustOpen(t, data)
	n, _ := newest(f.metas)
	return data[:f.offset(f.metas[n].highWater)], all
}

func mustOpen(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := newFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return f
}

// walkAll returns what Walk yields: the certain entries, and apart from them the doubtful ones.
func walkAll(t testing.TB, f *File) (sure, doubtful contents, report Report) {
	t.Helper()
	sure, doubtful = contents{}, contents{}
	report, err := f.Walk(t.Context(), func(e Entry) bool {
		into := sure
		if e.Doubtful {
			into = doubtful
		}
		into.add(e.Bucket, e.Key, e.Value)
		return true
	})
	if err != nil {
		t.Fatalf("Walk: %v", err)
	}
	return sure, doubtful, report
}

func requireSame(t testing.TB, got, want contents) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	missing, changed := 0, 0
	for k, v := range want {
		if g, ok := got[k]; !ok {
			missing++
		} else if g != v {
			changed++
		}
	}
	t.Fatalf("%d entries, want %d: %d are missing, %d changed", len(got), len(want), missing, changed)
}
