package signing

import (
	"errors"
	"fmt"
	"time"
)

// What can be wrong with a received request, in the order in which it is looked for. Test with errors.Is.
var (
	// ErrMissingHeader: a header that the scheme needs is not there. The error's text names it.
	ErrMissingHeader = errors.New("a header is missing")
	// ErrMalformed: a header is there twice, or is not written as the scheme has it.
	ErrMalformed = errors.New("a header is malformed")
	// ErrTooOld: the timestamp is further back than the tolerance. The error is a *TimestampError.
	ErrTooOld = errors.New("the timestamp is too old")
	// ErrTooNew: the timestamp is further ahead than the tolerance. The error is a *TimestampError.
	ErrTooNew = errors.New("the timestamp is in the future")
	// ErrNoMatch: no signature was made with one of the secrets over this body.
	ErrNoMatch = errors.New("no signature matches: another secret, or a body that is not byte for byte the one that was signed")
)

// ErrSetup means that the scheme or the secrets cannot be used, whatever the request.
var ErrSetup = errors.New("signatures are not set up")

// TimestampError tells how far a timestamp is off. It is ErrTooOld or ErrTooNew.
type TimestampError struct {
	At, Now   time.Time
	Tolerance time.Duration
}

// Error names the distance and the tolerance.
func (e *TimestampError) Error() string {
	off := e.Now.Sub(e.At).Round(time.Second)
	return fmt.Sprintf("%v: it is %v off, %v are tolerated", e.Unwrap(), off.Abs(), e.Tolerance)
}

// Unwrap is ErrTooOld or ErrTooNew.
func (e *TimestampError) Unwrap() error {
	if e.At.After(e.Now) {
		return ErrTooNew
	}
	return ErrTooOld
}
