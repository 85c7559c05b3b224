package spool

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"postern/spool/internal/pagefile"
)

// rescan stands between a commit that failed and what bbolt does about it: it looks through all pages for free ones, in a
// goroutine of its own, and a page that lies ends the process there, where nobody can recover. bbolt tells its logger of
// the failure before it begins, and in the committer's goroutine: so the file is looked through here first, by a reader
// that trusts nothing, and where it is damaged a panic keeps bbolt from going on, which store.guard makes an error of.
//
// It is the logger of the database that the committer writes to. It logs nothing: what fails is told by its error.
type rescan struct {
	armed atomic.Bool // a commit is under way, and its file was not looked through yet
	check func() error
}

// Errorf is told that something failed.
func (r *rescan) Errorf(string, ...any) {
	if !r.armed.CompareAndSwap(true, false) {
		return
	}
	if fault := r.check(); fault != nil {
		panic(fmt.Sprintf("met after a commit that failed: %v", fault)) // shows: the number of a page and what is wrong with it
	}
}

// Error and all below are what bbolt's interface asks for.
func (*rescan) Error(...any)            {}
func (*rescan) Debug(...any)            {}
func (*rescan) Debugf(string, ...any)   {}
func (*rescan) Info(...any)             {}
func (*rescan) Infof(string, ...any)    {}
func (*rescan) Warning(...any)          {}
func (*rescan) Warningf(string, ...any) {}
func (*rescan) Fatal(...any)            {}
func (*rescan) Fatalf(string, ...any)   {}
func (*rescan) Panic(...any)            {}
func (*rescan) Panicf(string, ...any)   {}

// verify looks for damage in what the visible state consists of. A file that cannot be read now is no damage: bbolt reads
// the same pages from memory.
func (st *store) verify() error {
	f, err := pagefile.OpenFile(st.file)
	if err != nil {
		return err
	}
	err = f.Verify(context.Background())
	if _, damaged := errors.AsType[*pagefile.DamageError](err); damaged {
		return err
	}
	return nil
}
