package term

import (
	"fmt"
	"strconv"
	"time"
)

// Age says how long ago or ahead something is, in at most two units: 4s, 3m, 2h10m, 5d.
func Age(d time.Duration) string {
	if d < 0 {
		d = -d
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}

// When writes a time as a person reads it, in local time, with its distance from now: "14:03:07 (4m ago)"; the date is
// there unless it is today's. The zero time is a dash.
func When(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	t, now = t.Local(), now.Local()
	layout := "2006-01-02 15:04:05"
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		layout = "15:04:05"
	}
	if t.After(now) {
		return fmt.Sprintf("%s (in %s)", t.Format(layout), Age(t.Sub(now)))
	}
	return fmt.Sprintf("%s (%s ago)", t.Format(layout), Age(now.Sub(t)))
}

// Bytes writes a size with a binary unit: 512 B, 1.5 KiB, 1.0 GiB.
func Bytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n), 0
	for value >= 1024 && unit < 4 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, "?KMGT"[unit])
}

// Millis writes milliseconds without false precision: 0.4 ms, 12 ms, 3.2 s.
func Millis(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
}

// Count writes n with its noun in the right number: 1 event, 2 events.
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}
