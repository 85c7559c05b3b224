package ingest

import "strings"

// knownControls are the headers with our prefix that a request may have. Postern-Attempt is among them because a
// Postern that delivers to this one adds it; Postern-Token is the guard's.
var knownControls = []string{"Postern-Url", "Postern-Event-Id", "Postern-Delay", "Postern-Not-Before", "Postern-Ttl",
	"Postern-Max-Attempts", "Postern-Timeout", "Postern-Token", "Postern-Attempt"}

// checkKnown refuses a header with our prefix that nobody reads: a typing error that is silently ignored would lose
// what the application wanted.
func checkKnown(name string) *refusal {
	nearest, best := "", 3 // further apart than two letters is no typing error
	for _, known := range knownControls {
		if known == name {
			return nil
		}
		if d := distance(name, known); d < best {
			nearest, best = known, d
		}
	}
	shown := name
	if len(shown) > 64 {
		shown = shown[:64] + "…"
	}
	if nearest == "" {
		return headerRefusal(shown, "there is no such control header; those there are: "+strings.Join(knownControls[:7], ", "))
	}
	return headerRefusal(shown, "there is no such control header; did you mean "+nearest+"?")
}

// distance counts the letters to insert, drop or replace to make b of a (Levenshtein).
func distance(a, b string) int {
	if len(a) > 2*len(b) {
		return len(a) - len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
