package spool

import (
	"iter"
	"math/bits"
)

// seqSet is a set of sequence numbers, which are dense where there are many.
type seqSet struct {
	words  map[uint64]uint64
	n      int64
	lowest uint64 // 0: the set is empty
}

func (s *seqSet) has(seq uint64) bool { return s.words[seq/64]&(1<<(seq%64)) != 0 }

func (s *seqSet) add(seq uint64) {
	if s.has(seq) {
		return
	}
	if s.words == nil {
		s.words = make(map[uint64]uint64)
	}
	s.words[seq/64] |= 1 << (seq % 64)
	s.n++
	s.lowest = lowestOf(s.lowest, seq)
}

// all yields the numbers in no order.
func (s *seqSet) all() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for at, word := range s.words {
			for ; word != 0; word &= word - 1 {
				if !yield(at*64 + uint64(bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// lowestOf is the lower of two numbers of which 0 means none.
func lowestOf(a, b uint64) uint64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
