package pagefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// File is an open database file. Its methods may not be called at the same time.
type File struct {
	// MaxValue is the largest value, in bytes, that Walk and Scan read; larger ones are counted as damaged. It bounds the
	// memory that a damaged length can make them take. Open sets it to 64 MiB.
	MaxValue int64

	r        io.ReaderAt
	closer   io.Closer
	size     int64
	pageSize int64
	pages    uint64 // that begin within the file; the last one may be cut
	metas    [2]meta
}

const defaultMaxValue = 64 << 20

// Open opens the file at path for reading and finds out its page size: from a valid meta page, or, where both are gone,
// from the numbers that the other pages carry. A damaged file is opened all the same, so that it can be salvaged: the
// errors of its own that Open returns (ErrEmpty, ErrBlank, ErrForeign, ErrVersion, ErrTruncated) say that there is
// nothing to be had.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	file, err := OpenFile(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	file.closer = f
	return file, nil
}

// OpenFile is Open for a file that is open already and stays so: Close leaves it alone.
func OpenFile(f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", ErrForeign)
	}
	return newFile(f, info.Size())
}

func newFile(r io.ReaderAt, size int64) (*File, error) {
	pageSize, err := findPageSize(r, size)
	if err != nil {
		return nil, err
	}
	f := &File{
		MaxValue: defaultMaxValue,
		r:        r,
		size:     size,
		pageSize: pageSize,
		pages:    uint64((size + pageSize - 1) / pageSize),
	}
	for n := range f.metas {
		f.metas[n] = parseMeta(readSome(r, size, int64(n)*pageSize, headerSize+metaSize), pageSize)
	}
	return f, nil
}

// MissingPages is how many pages the newest valid meta page knows of beyond the end of the file.
func (f *File) MissingPages() int {
	n, ok := newest(f.metas)
	if !ok || f.metas[n].highWater <= f.pages {
		return 0
	}
	return int(min(f.metas[n].highWater-f.pages, math.MaxInt32))
}

// Close closes the file.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// PageSize returns the size of a page in bytes.
func (f *File) PageSize() int { return int(f.pageSize) }

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return f.size }

// MetaDamage returns what is wrong with a meta page while the other one is good, or nil. bbolt opens such a file with the
// good one and says nothing, and Verify follows it; but the bad one may have been the newer: then the last commit is
// missing, and only Scan finds what it wrote.
func (f *File) MetaDamage() *DamageError {
	n, ok := newest(f.metas)
	if other := f.metas[1-n]; ok && other.err != nil {
		return damage(uint64(1-n), "the meta page is not valid: %v", other.err)
	}
	return nil
}

// findPageSize returns the page size, or why there is nothing to be read in the file.
func findPageSize(r io.ReaderAt, size int64) (int64, error) {
	if size == 0 {
		return 0, ErrEmpty
	}
	candidates := metaCandidates(r, size)
	for _, m := range candidates {
		if m.err == nil {
			return m.pageSize, nil
		}
	}
	if v, other := otherVersion(candidates); other {
		return 0, fmt.Errorf("%w: version %d, where this program knows %d", ErrVersion, v, metaVersion)
	}
	survey := surveyPages(r, size)
	if survey.pageSize > 0 {
		return survey.pageSize, nil
	}
	if m := candidates[0]; m.magic == metaMagic {
		// Nothing else of the file is left, but it was one of bbolt's.
		if plausiblePageSize(m.pageSize) {
			return m.pageSize, nil
		}
		return int64(os.Getpagesize()), nil
	}
	return 0, nothingFound(r, size, survey.blank)
}

// metaCandidates reads the first meta page, and whatever stands where the second one is for each page size.
func metaCandidates(r io.ReaderAt, size int64) []meta {
	found := []meta{parseMeta(readSome(r, size, 0, headerSize+metaSize), 0)}
	for pageSize := int64(minPageSize); pageSize <= maxPageSize; pageSize *= 2 {
		found = append(found, parseMeta(readSome(r, size, pageSize, headerSize+metaSize), pageSize))
	}
	return found
}

// otherVersion tells whether the meta pages are undamaged ones of another version. A flipped bit can turn our version
// into another one: so either a checksum must hold or two meta pages must agree.
func otherVersion(candidates []meta) (version uint32, other bool) {
	seen := map[uint32]int{}
	for _, m := range candidates {
		if m.magic != metaMagic || m.version == metaVersion {
			continue
		}
		seen[m.version]++
		if m.sumOK || seen[m.version] == 2 {
			return m.version, true
		}
	}
	return 0, false
}

// nothingFound says what a file is in which neither a meta page nor any other page was found.
func nothingFound(r io.ReaderAt, size int64, blank bool) error {
	if blank {
		return ErrBlank
	}
	// The first bytes of every database, up to and without the meta page's version, except for the page's unused fields.
	start := make([]byte, headerSize+4)
	order.PutUint16(start[8:], flagMeta)
	order.PutUint32(start[headerSize:], metaMagic)
	head := make([]byte, min(size, int64(len(start))))
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return fmt.Errorf("nothing of it can be read: %w", err)
	}
	if bytes.HasPrefix(start, head) {
		return ErrTruncated
	}
	return ErrForeign
}

// readSome returns up to n bytes at off: fewer at the end of the file, none where the disk gives none.
func readSome(r io.ReaderAt, size, off int64, n int) []byte {
	b := make([]byte, max(0, min(int64(n), size-off)))
	got, err := r.ReadAt(b, off)
	if err != nil && got < len(b) {
		return nil
	}
	return b
}
