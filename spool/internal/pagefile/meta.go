package pagefile

import (
	"errors"
	"hash/fnv"
	"math/bits"
)

// meta is one of the two meta pages: where a committed tree begins.
//
//	magic u32, version u32, page size u32, flags u32, root bucket (page u64, sequence u64), freelist page u64,
//	high-water mark u64 (the first page number that was never used), transaction u64, FNV-64a of all this u64
type meta struct {
	err       error // why bbolt would not use it; nil where it would
	magic     uint32
	version   uint32
	pageSize  int64
	root      uint64
	freelist  uint64
	highWater uint64
	txid      uint64
	sumOK     bool
}

const (
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 64
	metaSumAt   = 56
	// noFreelist in place of the freelist's page means that the list of free pages is not stored.
	noFreelist = ^uint64(0)
)

var (
	errMetaAbsent   = errors.New("it is missing")
	errMetaMagic    = errors.New("it has no magic number")
	errMetaVersion  = errors.New("it has another version")
	errMetaSum      = errors.New("its checksum is wrong")
	errMetaPageSize = errors.New("its page size is impossible")
)

// parseMeta reads a meta page of which b is the beginning. A page size of 0 takes whatever size the meta names.
func parseMeta(b []byte, pageSize int64) meta {
	if len(b) < headerSize+metaSize {
		return meta{err: errMetaAbsent}
	}
	b = b[headerSize : headerSize+metaSize]
	m := meta{
		magic:     order.Uint32(b),
		version:   order.Uint32(b[4:]),
		pageSize:  int64(order.Uint32(b[8:])),
		root:      order.Uint64(b[16:]),
		freelist:  order.Uint64(b[32:]),
		highWater: order.Uint64(b[40:]),
		txid:      order.Uint64(b[48:]),
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSumAt])
	m.sumOK = sum.Sum64() == order.Uint64(b[metaSumAt:])
	m.err = m.validate(pageSize)
	return m
}

// validate follows bbolt's order; the page size comes last, since only a right checksum makes it worth looking at.
func (m *meta) validate(pageSize int64) error {
	switch {
	case m.magic != metaMagic:
		return errMetaMagic
	case m.version != metaVersion:
		return errMetaVersion
	case !m.sumOK:
		return errMetaSum
	case !plausiblePageSize(m.pageSize), pageSize != 0 && m.pageSize != pageSize:
		return errMetaPageSize
	}
	return nil
}

func plausiblePageSize(n int64) bool {
	return n >= minPageSize && n <= maxPageSize && bits.OnesCount64(uint64(n)) == 1
}

// newest returns the number of the meta page that bbolt would use: the valid one with the higher transaction. ok is false
// where neither is valid.
func newest(metas [2]meta) (n int, ok bool) {
	switch first, second := metas[0].err == nil, metas[1].err == nil; {
	case first && second && metas[1].txid > metas[0].txid:
		return 1, true
	case first:
		return 0, true
	case second:
		return 1, true
	}
	return 0, false
}
