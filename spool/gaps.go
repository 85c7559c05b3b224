package spool

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"postern/spool/internal/layout"
	"postern/spool/internal/pagefile"
)

// gaps are the keys of a damaged file of which nothing sure was read, by bucket and in their order. What was there may
// be found on pages that nothing leads to; and what is in none of them was not in the file, whatever such pages hold.
type gaps [layout.NumBuckets][]pagefile.Gap

// gapsOf takes over what a walk has missed. A bucket that was not met, since its name or what leads to it is damaged, is
// a gap as a whole.
func gapsOf(walk *pagefile.Report) *gaps {
	var g gaps
	var met [layout.NumBuckets]bool
	for _, name := range walk.Buckets {
		if id, ok := layout.ByName(name); ok {
			met[id] = true
		}
	}
	for _, gap := range walk.Gaps {
		if len(gap.Bucket) == 0 {
			clear(met[:])
			continue
		}
		if id, ok := layout.ByName(gap.Bucket[0]); ok {
			g[id] = append(g[id], keysOfGap(gap))
		}
	}
	for id := range met {
		if !met[id] {
			g[id] = []pagefile.Gap{{}}
		}
		g[id] = pagefile.InOrder(g[id])
	}
	return &g
}

// keysOfGap is a gap of a bucket's own keys. There are no buckets within buckets: what looks like one is a record.
func keysOfGap(gap pagefile.Gap) pagefile.Gap {
	if len(gap.Bucket) > 1 {
		gap.From = gap.Bucket[1]
		gap.To = append(slices.Clone(gap.From), 0)
	}
	return pagefile.Gap{From: gap.From, To: gap.To}
}

// whole tells that everything of a bucket was read.
func (g *gaps) whole(id layout.Bucket) bool { return len(g[id]) == 0 }

// has tells whether a key is one of those of which nothing sure was read.
func (g *gaps) has(id layout.Bucket, key []byte) bool {
	list := g[id]
	n := sort.Search(len(list), func(i int) bool { return bytes.Compare(list[i].From, key) > 0 })
	return n > 0 && (list[n-1].To == nil || bytes.Compare(key, list[n-1].To) < 0)
}

// numbers counts the sequence numbers from lowest to highest that fall into the gaps of a bucket whose keys they are.
func (g *gaps) numbers(id layout.Bucket, lowest, highest uint64) (n int64) {
	for _, gap := range g[id] {
		from, to := max(lowest, firstFrom(gap.From)), highest
		if gap.To != nil {
			to = min(to, max(firstFrom(gap.To), 1)-1)
		}
		if to >= from {
			n += int64(to-from) + 1
		}
	}
	return n
}

// firstFrom is the first number whose key is not before a key of any length.
func firstFrom(key []byte) uint64 {
	var first [8]byte
	copy(first[:], key)
	n := binary.BigEndian.Uint64(first[:])
	if len(key) > len(first) && n < math.MaxUint64 {
		n++
	}
	return n
}
