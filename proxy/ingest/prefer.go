package ingest

import (
	"math"
	"strings"
	"time"
)

// maxWait bounds Prefer: wait; a longer one is cut to it, since a preference may be honoured in part.
const maxWait = 60 * time.Second

// readPrefer takes wait out of the Prefer lines (RFC 7240) and gives back what is left of them to pass on: the lines
// as they were where wait is not among their preferences. wait is negative where nothing valid was asked for. The
// first valid wait counts (section 2).
func readPrefer(lines []string) (wait time.Duration, rest []string) {
	wait = -1
	for _, line := range lines {
		found, kept := false, []string(nil)
		for pref := range preferences(line) {
			seconds, isWait, ok := waitSeconds(pref)
			if !isWait {
				if pref != "" {
					kept = append(kept, pref)
				}
				continue
			}
			found = true
			if ok && wait < 0 {
				wait = min(seconds, maxWait)
			}
		}
		switch {
		case !found:
			rest = append(rest, line)
		case len(kept) > 0:
			rest = append(rest, strings.Join(kept, ", "))
		}
	}
	return wait, rest
}

// preferences splits a line at the commas outside quoted strings. A quoted string that does not end goes to the end.
func preferences(line string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			end := indexOutsideQuotes(line, ',')
			if !yield(strings.Trim(line[:end], " \t")) || end == len(line) {
				return
			}
			line = line[end+1:]
		}
	}
}

// indexOutsideQuotes finds c outside quoted strings (RFC 9110, section 5.6.4); len(s) where there is none.
func indexOutsideQuotes(s string, c byte) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == c && !quoted:
			return i
		}
	}
	return len(s)
}

// waitSeconds reads one preference; its parameters, after a semicolon, mean nothing for wait.
func waitSeconds(pref string) (wait time.Duration, isWait, ok bool) {
	pref = pref[:indexOutsideQuotes(pref, ';')]
	name, value, _ := strings.Cut(pref, "=")
	if !strings.EqualFold(strings.Trim(name, " \t"), "wait") {
		return 0, false, false
	}
	value = strings.Trim(value, " \t")
	if inner, quoted := strings.CutPrefix(value, `"`); quoted {
		value = strings.TrimSuffix(inner, `"`)
	}
	seconds, ok := digits(value)
	return seconds, true, ok
}

// digits reads whole seconds; more than a Duration can hold is as much as it can.
func digits(s string) (time.Duration, bool) {
	const most = math.MaxInt64 / int64(time.Second)
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n, most/10)*10 + int64(s[i]-'0')
	}
	return time.Duration(min(n, most)) * time.Second, s != ""
}
