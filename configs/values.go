package configs

import (
	"errors"
	"fmt"
	"log/slog"
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

// integer is a whole number from least to most.
func integer(p *int, least, most int) kind {
	return scalar[int]{p, intBetween(least, most), func(n int) any { return int64(n) }}
}

func intBetween(least, most int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || strconv.Itoa(n) != text {
			return 0, fmt.Errorf("%s is not a whole number; write one from %d to %d", quote(text), least, most)
		}
		if n < least || n > most {
			return 0, fmt.Errorf("%d is out of range; write a number from %d to %d", n, least, most)
		}
		return n, nil
	}
}

// share is a part of a whole: over 0, at most 1.
func share(p *float64) kind {
	parse := func(text string) (float64, error) {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f > 0 && f <= 1) {
			return 0, fmt.Errorf("%s is not a share; write a number over 0 and at most 1, such as 0.5", quote(text))
		}
		return f, nil
	}
	return scalar[float64]{p, parse, func(f float64) any { return f }}
}

func boolean(p *bool) kind {
	parse := func(text string) (bool, error) {
		switch text {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return false, fmt.Errorf("%s is neither true nor false; write one of them", quote(text))
	}
	return scalar[bool]{p, parse, func(b bool) any { return b }}
}

// word is one of a few.
func word(p *string, words ...string) kind {
	return scalar[string]{p, oneOf(words), asString}
}

func oneOf(words []string) func(string) (string, error) {
	return func(text string) (string, error) {
		if slices.Contains(words, text) {
			return text, nil
		}
		if near, ok := suggest(text, words); ok {
			return "", fmt.Errorf("%s is not known; did you mean %s?", quote(text), near)
		}
		return "", fmt.Errorf("%s is not known; write one of %s", quote(text), strings.Join(words, ", "))
	}
}

func level(p *slog.Level) kind {
	words := []string{"debug", "info", "warn", "error"}
	parse := func(text string) (slog.Level, error) {
		name, err := oneOf(words)(text)
		if err != nil {
			return 0, err
		}
		var l slog.Level
		return l, l.UnmarshalText([]byte(name))
	}
	return scalar[slog.Level]{p, parse, func(l slog.Level) any { return strings.ToLower(l.String()) }}
}

// plain is a text with a check.
func plain(p *string, parse func(string) (string, error)) kind {
	return scalar[string]{p, parse, asString}
}

func asString(s string) any { return s }

func filePath(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("the path is empty; write one, or remove the key")
	case text != strings.TrimSpace(text) || strings.ContainsAny(text, "\x00\n\r"):
		return "", errors.New("the path begins or ends with a blank or has a control character in it; remove that")
	}
	return text, nil
}

// filePathOrEmpty lets a file say that there is none.
func filePathOrEmpty(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return filePath(text)
}
