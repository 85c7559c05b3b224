package configs

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
)

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
