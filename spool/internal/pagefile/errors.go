package pagefile

import (
	"errors"
	"fmt"
)

// Errors of Open: there is nothing that could be judged or salvaged.
var (
	// ErrEmpty means that the file has no bytes: bbolt would make a new database of it.
	ErrEmpty = errors.New("the file is empty")
	// ErrBlank means that the file has nothing but zeros, as one that was allocated and never written.
	ErrBlank = errors.New("the file holds nothing but zeros")
	// ErrForeign means that nothing in the file is bbolt's: it is another program's, or wholly overwritten.
	ErrForeign = errors.New("the file is not a bbolt database")
	// ErrVersion means that the file is in a version of bbolt's format that this package does not know.
	ErrVersion = errors.New("the file is in another version of the bbolt format")
	// ErrTruncated means that the file ends before the data that it speaks of. As an error of Open it means that not even
	// its first page is whole; in a DamageError, that what is there can be salvaged.
	ErrTruncated = errors.New("the file was cut short")
)

// DamageError is the first fault that was found in a file, or in one page of it.
type DamageError struct {
	Page uint64 // the page with the fault, counted from the start of the file
	What string // what is wrong with it; never holds bytes of keys or values
	Err  error  // ErrTruncated, or why the disk did not give the page, or nil
}

// Error names the page and its fault.
func (e *DamageError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("page %d: %s: %v", e.Page, e.What, e.Err)
	}
	return fmt.Sprintf("page %d: %s", e.Page, e.What)
}

// Unwrap returns Err.
func (e *DamageError) Unwrap() error { return e.Err }

func damage(page uint64, format string, args ...any) *DamageError {
	return &DamageError{Page: page, What: fmt.Sprintf(format, args...)}
}
