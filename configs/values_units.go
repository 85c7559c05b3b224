package configs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// duration is a Go duration of at least the least one.
func duration(p *time.Duration, least time.Duration) kind {
	return scalar[time.Duration]{p, durationFrom(least), func(d time.Duration) any { return formatDuration(d) }}
}

func durationFrom(least time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%s is not a duration; %s", quote(text), durationAdvice(text))
		case d < 0:
			return 0, fmt.Errorf("a duration cannot be negative; write %s or more", formatDuration(least))
		case d < least:
			return 0, fmt.Errorf("%s is too short; write %s or more", quote(text), formatDuration(least))
		}
		return d, nil
	}
}

func durationAdvice(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return fmt.Sprintf("a unit is missing: write %ss for seconds", text)
	}
	if squeezed := strings.ReplaceAll(text, " ", ""); squeezed != text {
		if _, err := time.ParseDuration(squeezed); err == nil {
			return "write it without blanks: " + squeezed
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return fmt.Sprintf("days are written in hours: %dh", n*24)
		}
	}
	return "write a number and a unit (ms, s, m, h), such as 500ms, 30s or 1h30m"
}

// formatDuration writes a duration as people do: 1h instead of 1h0m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-len("0s")]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-len("0m")]
	}
	return text
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", kib}, {"MiB", mib}, {"GiB", gib}, {"TiB", gib << 10},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// size is a number of bytes of at least the least one.
func size(p *int64, least int64) kind {
	parse := func(text string) (int64, error) {
		n, err := parseSize(text)
		if err == nil && n < least {
			return 0, fmt.Errorf("%s is too small; write %s or more", quote(text), formatSize(least))
		}
		return n, err
	}
	return scalar[int64]{p, parse, func(n int64) any { return formatSize(n) }}
}

func parseSize(text string) (int64, error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	number, unit := text[:digits], strings.TrimPrefix(text[digits:], " ")
	if digits == 0 {
		return 0, fmt.Errorf("%s is not a size; write bytes such as 1048576, or a whole number and a unit such as 64MiB", quote(text))
	}
	for _, u := range sizeUnits {
		if !strings.EqualFold(unit, u.name) {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > math.MaxInt64/u.bytes {
			return 0, fmt.Errorf("%s is more bytes than can be counted", quote(text))
		}
		return n * u.bytes, nil
	}
	return 0, fmt.Errorf("%s is not a size: use a whole number with KiB, MiB, GiB (1024) or KB, MB, GB (1000)", quote(text))
}

// formatSize writes a size in the largest binary unit that holds it exactly.
func formatSize(n int64) string {
	for _, u := range slices.Backward(sizeUnits[:4]) {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
