// Package bucket decides when the next request may leave under limits such as 100 a minute and 1000 an hour.
//
// It promises: in any window of a limit's length at most that many requests leave, counted at the moment at which each
// was written to the wire, whatever its delay between permit and wire. golang.org/x/time/rate spaces requests evenly
// over the shortest window (with a burst); by itself it promises nothing about windows, so a record of the last sends
// has the final word. Because receivers count at their own door, behind a network that delays one request more than
// the next, each window is stretched by a twentieth, 50 ms at most.
//
// It leaves out: storage and reservations (see package limiter), fairness, clocks. It is pure: times in, decisions
// out. One goroutine owns a Bucket.
package bucket

import (
	"errors"
	"fmt"
	"time"
)

// MaxN bounds a limit's count: the record keeps one send in 8 bytes.
const MaxN = 1_000_000

// maxSlack is the longest stretch of a window: the jitter between our wire and the receiver's clock that we allow for.
const maxSlack = 50 * time.Millisecond

// Limit is one rule: at most N requests in any window of length Per.
type Limit struct {
	N   int
	Per time.Duration
}

// Validate returns what is impossible about the limit and what would be right.
func (l Limit) Validate() error {
	switch {
	case l.N < 1:
		return fmt.Errorf("limit %d/%v lets nothing through: the count must be 1 or more (pause the endpoint to stop it)", l.N, l.Per)
	case l.N > MaxN:
		return fmt.Errorf("limit %d/%v is too large: the count may be %d at most; use a shorter window", l.N, l.Per, MaxN)
	case l.Per < time.Millisecond:
		return fmt.Errorf("limit %d/%v: the window must be 1ms or longer", l.N, l.Per)
	default:
		return nil
	}
}

// window is the stretched length that the record enforces.
func (l Limit) window() time.Duration { return l.Per + min(maxSlack, l.Per/20) }

// Validate checks limits and the burst together.
func Validate(limits []Limit, burst int) error {
	var errs []error
	for _, l := range limits {
		if err := l.Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	if len(limits) == 0 || len(errs) > 0 {
		return errors.Join(errs...)
	}
	if most := shortest(limits).N; burst < 1 || burst > most {
		return fmt.Errorf("burst is %d: it must be between 1 and %d, the count of the shortest window", burst, most)
	}
	return nil
}

// shortest returns the limit with the shortest window, the stricter one of equals. There must be one.
func shortest(limits []Limit) Limit {
	s := limits[0]
	for _, l := range limits[1:] {
		if l.Per < s.Per || l.Per == s.Per && l.N < s.N {
			s = l
		}
	}
	return s
}
