package pagefile

import (
	"bytes"
	"cmp"
	"slices"
)

// Gap is a stretch of keys: those from From on and before To, of which nil is no bound. Where Bucket is empty, it is the
// whole file.
type Gap struct {
	Bucket   [][]byte
	From, To []byte
}

// InOrder sorts gaps and makes one of those that overlap or touch.
func InOrder(gaps []Gap) (merged []Gap) {
	slices.SortStableFunc(gaps, func(a, b Gap) int {
		return cmp.Or(slices.CompareFunc(a.Bucket, b.Bucket, bytes.Compare), bytes.Compare(a.From, b.From))
	})
	for _, g := range gaps {
		if n := len(merged); n > 0 && equalPath(merged[n-1].Bucket, g.Bucket) && merged[n-1].reaches(g.From) {
			if last := &merged[n-1]; last.To != nil && g.reaches(last.To) {
				last.To = g.To
			}
			continue
		}
		merged = append(merged, g)
	}
	return merged
}

// reaches tells that the gap ends at a key or behind it.
func (g *Gap) reaches(key []byte) bool { return g.To == nil || bytes.Compare(g.To, key) >= 0 }

// miss notes the keys that belong at this place. Below a fault, they were noted with it.
func (t *traversal) miss(at place) {
	if t.missed != nil && !at.doubtful {
		t.missed(Gap{Bucket: slices.Clone(t.bucket), From: slices.Clone(at.lo), To: slices.Clone(at.hi)}, at.loose)
	}
}

// missed notes a gap. Where its bounds may lie, it begins behind the last sure key and ends with the next one.
func (c *collector) missed(g Gap, loose bool) {
	if loose {
		if c.last != nil && equalPath(c.lastIn, g.Bucket) {
			g.From = append(c.last[:len(c.last):len(c.last)], 0)
		}
		g.To = nil
	}
	c.report.Gaps = append(c.report.Gaps, g)
}

// sure notes that the sure keys of a page begin or end with this one: gaps before it end there.
func (c *collector) sure(bucket [][]byte, key []byte) {
	c.last, c.lastIn = slices.Clone(key), append(c.lastIn[:0], bucket...)
	for i := len(c.report.Gaps) - 1; i >= 0; i-- {
		g := &c.report.Gaps[i]
		if len(g.Bucket) == 0 || !equalPath(g.Bucket, bucket) || g.To != nil && bytes.Compare(g.To, key) <= 0 {
			break
		}
		g.To = c.last
	}
}

func equalPath(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
