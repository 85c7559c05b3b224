package pagefile

import (
	"math/bits"
	"slices"
)

// PageSet is a set of page numbers, one bit each. A nil PageSet is empty.
type PageSet struct {
	words []uint64
}

func newPageSet(pages uint64) *PageSet {
	return &PageSet{words: make([]uint64, (pages+63)/64)}
}

// Has tells whether page is in the set.
func (s *PageSet) Has(page uint64) bool {
	return s != nil && page/64 < uint64(len(s.words)) && s.words[page/64]&(1<<(page%64)) != 0
}

func (s *PageSet) clone() *PageSet { return &PageSet{words: slices.Clone(s.words)} }

// Len returns the number of pages in the set.
func (s *PageSet) Len() int {
	n := 0
	if s != nil {
		for _, w := range s.words {
			n += bits.OnesCount64(w)
		}
	}
	return n
}

// add puts page in and tells whether it was not there before. The page must be one of those the set was made for.
func (s *PageSet) add(page uint64) bool {
	w, bit := &s.words[page/64], uint64(1)<<(page%64)
	if *w&bit != 0 {
		return false
	}
	*w |= bit
	return true
}
