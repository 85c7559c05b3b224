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
	s := survey{blank: true}
	votes := map[int64]int{}
	buf := make([]byte, min(surveyChunk, size))
	for off := int64(0); off < size; off += surveyChunk {
		chunk := buf[:min(surveyChunk, size-off)]
		complete := readLossy(r, chunk, off)
		s.blank = s.blank && complete && isZero(chunk)
		for at := 0; at+headerSize <= len(chunk); at += minPageSize {
			if guess := impliedPageSize(chunk[at:], off+int64(at)); guess > 0 {
				votes[guess]++
				if votes[guess] >= surveyEnough && clearlyMost(votes, guess) {
					return survey{pageSize: guess}
				}
			}
		}
	}
	for guess, n := range votes {
		if s.pageSize == 0 || n > votes[s.pageSize] || n == votes[s.pageSize] && guess < s.pageSize {
			s.pageSize = guess
		}
	}
	return s
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

func clearlyMost(votes map[int64]int, guess int64) bool {
	for other, n := range votes {
		if other != guess && n*4 > votes[guess] {
			return false
		}
	}
	return true
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
