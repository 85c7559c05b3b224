package pagefile

import (
	"bytes"
	"testing"
)

// FuzzFile takes any bytes for a file, as they are and once more with right checksums on the meta pages: without them
// everything would end there. Small pages let the fuzzer change whole trees.
func FuzzFile(f *testing.F) {
	f.Add(sound().data)
	f.Add([]byte{})
	f.Add(sound().data[:3000])
	for _, d := range []database{
		{pageSize: minPageSize, entries: 3, valueSize: 20, nested: true},
		{pageSize: minPageSize, entries: 40, valueSize: 60},
		{pageSize: minPageSize, entries: 6, valueSize: 900, rounds: 2},
	} {
		data, _ := d.image(f)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		survive(t, data)
		c := crafted{data: bytes.Clone(data), pageSize: minPageSize}
		if len(data) < 2*minPageSize {
			return
		}
		c.seal(0)
		c.seal(1)
		judge(t, c.data)
	})
}
