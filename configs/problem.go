package configs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problem is one mistake in the configuration. Load returns all that it found, joined; errors.As finds the first.
type Problem struct {
	File string // or the flag that the value came from, such as --listen
	Line int    // from 1; 0 where the value is not from a file
	Col  int    // from 1
	Key  string // the path of the key, such as endpoints[0].retry.base_delay; empty for the file as a whole
	Text string // what is wrong and what would be right
}

// Error writes FILE:LINE:COLUMN: KEY: TEXT, leaving out what is not known.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteString(":" + strconv.Itoa(p.Line))
	}
	if p.Line > 0 && p.Col > 0 {
		b.WriteString(":" + strconv.Itoa(p.Col))
	}
	if p.File != "" {
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// join orders the problems as the file does and makes one error of them, nil where there are none.
func join(problems []*Problem) error {
	slices.SortStableFunc(problems, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	problems = slices.CompactFunc(problems, func(a, b *Problem) bool { return *a == *b })
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// quote shows a value that is no secret, cut to a length that fits a line.
func quote(text string) string {
	const longest = 40
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

// suggest returns the word nearest to a mistyped or shortened one, or nothing where none is near.
func suggest(wrong string, words []string) (string, bool) {
	for _, word := range words {
		if len(wrong) >= 3 && (strings.HasPrefix(wrong, word) || strings.HasPrefix(word, wrong)) {
			return word, true
		}
	}
	best, distance := "", max(1, min(3, len(wrong)/3))+1
	for _, word := range words {
		if len(wrong) > len(word)+distance {
			continue // also keeps a monstrous key from costing anything
		}
		if d := editDistance(strings.ToLower(wrong), word); d < distance {
			best, distance = word, d
		}
	}
	return best, best != ""
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
func editDistance(a, b string) int {
	var before []int
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(previous[j+1]+1, row[j]+1, previous[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, previous = previous, row
	}
	return previous[len(b)]
}
