package spool

import "postern/spool/internal/layout"

// compaction is what the committer needs to know of a copy in the making.
type compaction struct {
	ready chan *compactor
}

type compactor struct{}

func (c *compaction) note(layout.Bucket, []byte) {}
func (c *compaction) abandon()                   {}
func (s *Spool) finishCompaction(*compactor)     {}
