package pagefile

import (
	"testing"
)

// FuzzFile takes any bytes for a file. Small pages let the fuzzer change whole trees.
func FuzzFile(f *testing.F) {
	f.Add(sound().data)
	f.Add([]byte{})
	f.Add(sound().data[:3000])
	for _, name := range []string{"one inline", "three levels"} {
		d := databases()[name]
		d.pageSize, d.entries, d.nested = 1024, min(d.entries, 60), true
		data, _ := d.image(f)
		f.Add(data[:min(len(data), 64<<10)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		judge(t, data)
	})
}
