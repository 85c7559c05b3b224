package torture

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run found out. It names no machine and no path.
type report struct {
	Date    string   `json:"date"`
	Seed    uint64   `json:"seed"`
	Seconds float64  `json:"seconds"`
	Missing []string `json:"not_broken_here,omitempty"`
	Rows    []row    `json:"rows"`
}

// row is all rounds of one fault.
type row struct {
	Fault  string `json:"fault"`
	Rounds int    `json:"rounds"`
	tally
}

// add puts a round to its fault's row.
func (r *report) add(fault string, got tally) {
	i := slices.IndexFunc(r.Rows, func(row row) bool { return row.Fault == fault })
	if i < 0 {
		r.Rows = append(r.Rows, row{Fault: fault})
		i = len(r.Rows) - 1
	}
	r.Rows[i].plus(1, got)
}

func (r *row) plus(rounds int, got tally) {
	r.Rounds += rounds
	r.Events += got.Events
	r.Accepted += got.Accepted
	r.Refused += got.Refused
	r.Unanswered += got.Unanswered
	r.Delivered += got.Delivered
	r.Requests += got.Requests
	r.Lost += got.Lost
	r.Forgotten += got.Forgotten
	r.Unrecorded += got.Unrecorded
	for cause, n := range got.Duplicates {
		if r.Duplicates == nil {
			r.Duplicates = map[string]int{}
		}
		r.Duplicates[cause] += n
	}
	r.Recovery = max(r.Recovery, got.Recovery)
}

// print is the table for people.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%s, seed %d, %.0f s\n\n", r.Date, r.Seed, r.Seconds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FAULT\tROUNDS\tEVENTS\tACCEPTED\tREFUSED\tREQUESTS\tLOST\tDUPLICATES\tNO RECORD\tLONGEST RECOVERY")
	slices.SortFunc(r.Rows, func(a, b row) int { return strings.Compare(a.Fault, b.Fault) })
	all := row{Fault: "all"}
	for _, row := range r.Rows {
		row.print(t)
		all.plus(row.Rounds, row.tally)
	}
	all.print(t)
	t.Flush()
}

func (r *row) print(w io.Writer) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%d\t%.1f s\n", r.Fault, r.Rounds, r.Events, r.Accepted, r.Refused, r.Requests, r.Lost, r.duplicates(), r.Unrecorded, r.Recovery.Round(100*time.Millisecond).Seconds())
}

func (r *row) duplicates() string {
	sum, causes := 0, []string{}
	for _, cause := range slices.Sorted(maps.Keys(r.Duplicates)) {
		sum += r.Duplicates[cause]
		causes = append(causes, fmt.Sprintf("%d %s", r.Duplicates[cause], cause))
	}
	if sum == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", sum, strings.Join(causes, ", "))
}

func (r *report) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
