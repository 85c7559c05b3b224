package pagefile

import (
	"bytes"
	"io"
)

// A survey finds the page size of a file without meta pages. Every page carries its own number, so that offset and number
// together give the size: bytes that are no page have no chance to fit by accident.
type survey struct {
	pageSize int64 // 0: no page was found
	blank    bool  // the whole file is zeros
}

const (
	surveyChunk = 1 << 20
	// surveyEnough votes for one size end the survey, if no other size has a quarter as many. The other votes come from
	// database files that are themselves the content of this one.
	surveyEnough = 64
)

func surveyPages(r io.ReaderAt, size int64) survey {
	blank := true
	votes := ballot{}
	buf := make([]byte, min(surveyChunk, size))
	for off := int64(0); off < size; off += surveyChunk {
		chunk := buf[:min(surveyChunk, size-off)]
		complete := readLossy(r, chunk, off)
		blank = blank && complete && isZero(chunk)
		if clear := votes.count(chunk, off); clear > 0 {
			return survey{pageSize: clear}
		}
	}
	return survey{pageSize: votes.most(), blank: blank}
}

// ballot counts the pages that speak for each page size.
type ballot map[int64]int

// count adds the votes in chunk, which begins at off, and returns a page size if one has clearly won.
func (b ballot) count(chunk []byte, off int64) int64 {
	for at := 0; at+headerSize <= len(chunk); at += minPageSize {
		guess := impliedPageSize(chunk[at:], off+int64(at))
		if guess == 0 {
			continue
		}
		if b[guess]++; b[guess] >= surveyEnough && b.clearly(guess) {
			return guess
		}
	}
	return 0
}

func (b ballot) clearly(guess int64) bool {
	for other, n := range b {
		if other != guess && n*4 > b[guess] {
			return false
		}
	}
	return true
}

// most returns the page size with the most votes, the smallest of several, or 0.
func (b ballot) most() int64 {
	var best int64
	for guess, n := range b {
		if n > b[best] || n == b[best] && guess < best {
			best = guess
		}
	}
	return best
}

// readLossy fills chunk from off, with zeros where the disk gives nothing, and tells whether it gave everything.
func readLossy(r io.ReaderAt, chunk []byte, off int64) (complete bool) {
	if n, _ := r.ReadAt(chunk, off); n == len(chunk) {
		return true
	}
	complete = true
	for at := 0; at < len(chunk); at += minPageSize {
		piece := chunk[at:min(at+minPageSize, len(chunk))]
		if n, _ := r.ReadAt(piece, off+int64(at)); n < len(piece) {
			clear(piece)
			complete = false
		}
	}
	return complete
}

// impliedPageSize returns the page size of which the bytes at off would be a page, or 0.
func impliedPageSize(head []byte, off int64) int64 {
	p := parsePage(head, 0)
	switch p.flags {
	case flagBranch, flagLeaf, flagFreelist:
	default:
		return 0
	}
	if p.id < 2 || p.id > uint64(off) || uint64(off)%p.id != 0 {
		return 0
	}
	if guess := off / int64(p.id); plausiblePageSize(guess) {
		return guess
	}
	return 0
}

func isZero(b []byte) bool {
	zeros := make([]byte, 4096)
	for len(b) > 0 {
		n := min(len(b), len(zeros))
		if !bytes.Equal(b[:n], zeros[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}
