package pagefile

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// BenchmarkVerify measures what the start of Postern costs with a large backlog: a million events of 1 KB are a file of
// 1.3 GB. Here it is a tenth of that; the time per gigabyte is the figure to look at.
func BenchmarkVerify(b *testing.B) {
	for name, s := range map[string]struct {
		events, size int
		random       bool
	}{
		"1 KB":           {100_000, 1000, false},
		"1 KB scattered": {100_000, 1000, true},
		"18 KB":          {6_000, 18_000, false},
		"4 KB":           {26_000, 4_000, false},
	} {
		b.Run(name, func(b *testing.B) {
			f, err := Open(largeDatabase(b, s.events, s.size, s.random))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Verify(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(f.Size())*1e9, "s/GB")
		})
	}
}

func largeDatabase(tb testing.TB, events, size int, random bool) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "large.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	if err != nil {
		tb.Fatal(err)
	}
	value := make([]byte, size)
	for start := 0; start < events; start += 1000 {
		err := db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("events"))
			if err != nil {
				return err
			}
			due, err := tx.CreateBucketIfNotExists([]byte("due"))
			if err != nil {
				return err
			}
			bucket.FillPercent = 0.9
			for i := start; i < min(start+1000, events); i++ {
				key := binary.BigEndian.AppendUint64(nil, uint64(i))
				if random {
					key = fmt.Appendf(nil, "%016x", rand.Uint64())
				}
				if err := bucket.Put(key, value); err != nil {
					return err
				}
				if err := due.Put(append(make([]byte, 8), key...), []byte("endpoint")); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}
