package pgstore

import (
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Postgres refuses text with a NUL or with bytes that are not UTF-8, numbers outside a column's range, and keys too long
// for an index. What comes in is made to fit, always in the same way, so that a row that comes twice is still one row.

const (
	// maxKey bounds what stands in an index: a third of a page is the limit there.
	maxKey = 1000
	// maxText bounds everything else. Errors are short classes.
	maxText = 200
)

// text makes s fit for a column: no NUL, valid UTF-8, at most limit bytes. Longer text keeps its start and ends with a
// hash of the whole, so that two long keys stay two.
func text(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	h := fnv.New64a()
	h.Write([]byte(s))
	tail := fmt.Sprintf("~%016x", h.Sum64())
	cut := limit - len(tail)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + tail
}

// orNull is nil for an empty text.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	s = text(s, maxText)
	return &s
}

// number clamps to what an integer column holds.
func number[T ~int | ~int64 | ~uint64](n T) int32 {
	if n > T(math.MaxInt32) {
		return math.MaxInt32
	}
	return int32(max(n, 0))
}

// millis rounds a duration to whole milliseconds.
func millis(d time.Duration) int32 { return number(d.Round(time.Millisecond).Milliseconds()) }

var (
	firstTime = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// moment clamps a time to what clocks can show, to the microsecond.
func moment(t time.Time) time.Time {
	switch {
	case t.Before(firstTime):
		return firstTime
	case t.After(lastTime):
		return lastTime
	}
	return t.UTC().Truncate(time.Microsecond)
}

// momentOrNull is nil for the zero time.
func momentOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = moment(t)
	return &t
}

// payload is the body as jsonb: itself where it is JSON that jsonb takes, else {"base64": …}.
func payload(body []byte) *string {
	if body == nil {
		return nil
	}
	if jsonbTakes(body) {
		s := string(body)
		return &s
	}
	s := `{"base64": "` + base64.StdEncoding.EncodeToString(body) + `"}`
	return &s
}
