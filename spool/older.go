package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
)

// A file that was put back from a copy is sound, and older than what was here: what was accepted since is missing, and what
// was delivered since is sent again. So the mark beside the file has, behind its stamp, the next sequence number as it was
// about a second ago. It is written after the commits that it tells of, so that only an older file is behind it.
const notedAt = 16

// noteSeq writes the number down in its place, without a sync: after a power cut an older one is there, which accuses nobody.
func (d *directory) noteSeq(next uint64) error {
	f, err := os.OpenFile(d.join(cleanName), os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, next), notedAt)
	return errors.Join(err, f.Close())
}

// notedSeq is 0 where nothing was noted.
func (d *directory) notedSeq() uint64 {
	mark, err := os.ReadFile(d.join(cleanName))
	if err != nil || len(mark) < notedAt+8 {
		return 0
	}
	return binary.BigEndian.Uint64(mark[notedAt:])
}

// missedBy tells how many events were accepted here after this state of the file.
func (d *directory) missedBy(next uint64) uint64 {
	if noted := d.notedSeq(); noted > next {
		return noted - next
	}
	return 0
}

// sayOlder says once that the file is older than what was here.
func (s *Spool) sayOlder(next uint64) error {
	n := s.dir.missedBy(next)
	if n == 0 {
		return nil
	}
	s.cfg.Logger.Error("the spool's file is older than what was here, such as a copy that was put back: events that were accepted since are missing, "+
		"and what was delivered since is sent again", slog.String("file", s.dir.file()), slog.Uint64("accepted_since", n))
	return s.dir.noteSeq(next)
}

// noteNext keeps the number up to date while Postern runs.
func (s *Spool) noteNext() {
	s.mu.Lock()
	next := s.counters.nextSeq
	s.mu.Unlock()
	if !s.committer.started || next == s.committer.noted {
		return
	}
	if s.dir.noteSeq(next) == nil { // where it fails the next time will do, and an older number does no harm
		s.committer.noted = next
	}
}

// olderProblem is what a check says of it.
func olderProblem(n uint64) string {
	return fmt.Sprintf("the file is older than what was here, such as a copy that was put back: %d events were accepted since", n)
}
