package bucket

import (
	"time"

	"golang.org/x/time/rate"
)

// spacer spaces requests over the shortest window with x/time/rate. Its zero value spaces nothing.
type spacer struct {
	limiter *rate.Limiter
	// last is the latest time seen. The limiter would hand out tokens twice if it were asked about an earlier one.
	last time.Time
}

// set puts a limit in force. Tokens already spent stay spent.
func (s *spacer) set(l Limit, burst int, now time.Time) {
	every := rate.Limit(float64(l.N) / l.window().Seconds())
	if s.limiter == nil {
		s.limiter = rate.NewLimiter(every, max(burst, 1))
		return
	}
	now = s.forward(now)
	s.limiter.SetLimitAt(now, every)
	s.limiter.SetBurstAt(now, max(burst, 1))
}

// wait returns how long it is until a token is there, by the same arithmetic as the limiter's own, so that a zero
// wait means that take succeeds.
func (s *spacer) wait(now time.Time) time.Duration {
	if s.limiter == nil {
		return 0
	}
	missing := 1 - s.limiter.TokensAt(later(now, s.last))
	d := time.Duration(missing / float64(s.limiter.Limit()) * float64(time.Second))
	if d <= 0 {
		return 0
	}
	// Rounded up, since a wait that is a fraction of a nanosecond short would make the caller come back in vain.
	return d + time.Microsecond
}

// take spends a token if there is one.
func (s *spacer) take(now time.Time) bool {
	return s.limiter == nil || s.limiter.AllowN(s.forward(now), 1)
}

// undo gives one token back. The limiter has no such call, so it is replaced by one that was emptied just so long ago
// that it holds one token more now.
func (s *spacer) undo(now time.Time) {
	if s.limiter == nil {
		return
	}
	now = s.forward(now)
	limit, burst := s.limiter.Limit(), s.limiter.Burst()
	tokens := min(s.limiter.TokensAt(now)+1, float64(burst))
	s.limiter = rate.NewLimiter(limit, burst)
	s.limiter.AllowN(now.Add(-time.Duration(tokens/float64(limit)*float64(time.Second))), burst)
}

func (s *spacer) forward(now time.Time) time.Time {
	s.last = later(now, s.last)
	return s.last
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
