package retry

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// dateLayouts are the three forms of an HTTP date (RFC 9110, section 5.6.7): IMF-fixdate, RFC 850, asctime.
var dateLayouts = [...]string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 GMT",
	"Mon Jan _2 15:04:05 2006",
}

// maxWait is what a number of seconds too large for a Duration means: a century, so that sums with it cannot overflow.
const maxWait = 100 * 365 * 24 * time.Hour

// maxHeaderLen is over every valid value; longer ones are not looked at.
const maxHeaderLen = 64

// ParseRetryAfter reads the value of a Retry-After header (RFC 9110, section 10.2.3) at the time now: whole seconds, or
// a date in any of its three forms. A date has lost its fraction of a second, so the wait lasts until that second is
// over. Not ok are dates that have passed, negative or fractional numbers, and everything else. What is too large to
// represent is a long wait, for the policy's cap to cut.
func ParseRetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.Trim(value, " \t")
	if value == "" || len(value) > maxHeaderLen {
		return 0, false
	}
	if isDigits(value) {
		return seconds(value), true
	}
	for _, layout := range dateLayouts {
		at, err := time.Parse(layout, value)
		if err != nil {
			continue
		}
		if !at.After(now) {
			return 0, false
		}
		return min(at.Sub(now), maxWait) + time.Second, true
	}
	return 0, false
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// seconds reads a string of digits; the only error left to ParseInt is that the number is too large.
func seconds(digits string) time.Duration {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/int64(time.Second) {
		return maxWait
	}
	return min(time.Duration(n)*time.Second, maxWait)
}
