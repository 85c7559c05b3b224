package quantile

import (
	"slices"
	"time"
)

// Slot is one half hour of a window, beginning on the wall clock's half hours.
type Slot struct {
	Start time.Time
	Summary
}

// Slots returns the half hours of the window that ends now which have samples, oldest first: 49 at most, the first and
// the last of them partial.
func (w *Window) Slots(now time.Time) []Slot {
	w.mu.Lock()
	offset := now.Sub(w.base)
	w.expireLocked(offset)
	parts := map[int64]*values{}
	part := func(index int64) *values {
		if parts[index] == nil {
			parts[index] = &values{}
		}
		return parts[index]
	}
	for _, s := range w.exact[w.head:] {
		p := part(slotOf(s.at))
		p.exact = append(p.exact, s.took)
	}
	for _, s := range w.slots {
		part(s.index).buckets = slices.Clone(s.sketch)
	}
	base := w.base
	w.mu.Unlock()

	slots := make([]Slot, 0, len(parts))
	for index, p := range parts {
		start := now.Add(base.Add(time.Duration(index) * slotSpan).Sub(now))
		slots = append(slots, Slot{Start: start, Summary: newValues(p.exact, p.buckets).summary()})
	}
	slices.SortFunc(slots, func(a, b Slot) int { return a.Start.Compare(b.Start) })
	return slots
}
