package app

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// A Postern that keeps up holds a few megabytes and allocates hundreds of them a second. By the runtime's default it
// would collect whenever the heap has doubled, dozens of times a second, which took a tenth of the processor and more. So
// the heap may grow by gcHeadroom, however small it is; a large one doubles as ever. What is live does not grow by it.

const (
	// gcHeadroom is how many bytes may be allocated between two collections at least. docs/performance.md has what it brings.
	gcHeadroom = 24 << 20
	// gcDefault is the runtime's own percentage, gcMost bounds ours: the runtime lets a heap grow to 4 MB times it anyway.
	gcDefault = 100
	gcMost    = 600
)

// manyEndpoints is from where on reading a configuration, or dropping ad hoc endpoints, is worth a collection of its own.
const manyEndpoints = 1000

// giveBackRest returns to the system what reading a large configuration took beyond what is kept of it, several times as
// much, or what thousands of endpoints took that are gone: it would stay for as long as little else is allocated.
func giveBackRest(endpoints int) {
	if endpoints >= manyEndpoints {
		debug.FreeOSMemory()
	}
}

// gcPercent is what to set where so many bytes are live.
func gcPercent(live uint64) int {
	percent := gcHeadroom * 100 / max(live, 1)
	return int(min(max(percent, gcDefault), gcMost))
}

// keepHeadroom adjusts the collector after each collection, until the returned function is called. Whoever sets GOGC
// decides alone; GOMEMLIMIT is heeded by the runtime in any case.
func keepHeadroom() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	var ended atomic.Bool
	before := debug.SetGCPercent(gcPercent(0))
	h := &headroom{ended: &ended, percent: gcPercent(0), live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	h.arm()
	return func() {
		if ended.CompareAndSwap(false, true) {
			debug.SetGCPercent(before)
		}
	}
}

// headroom is set anew after each collection; cleanups run one after the other.
type headroom struct {
	ended   *atomic.Bool
	percent int
	live    []metrics.Sample
}

// sentinel is garbage from the start: its cleanup tells that a collection has ended.
type sentinel struct{ _ [16]byte }

func (h *headroom) arm() { runtime.AddCleanup(new(sentinel), (*headroom).adjust, h) }

func (h *headroom) adjust() {
	if h.ended.Load() {
		return
	}
	metrics.Read(h.live)
	// A change stops the world for a moment: a small one is not worth it.
	if want := gcPercent(h.live[0].Value.Uint64()); want < h.percent*9/10 || want > h.percent*11/10 {
		h.percent = want
		debug.SetGCPercent(want)
	}
	h.arm()
}
