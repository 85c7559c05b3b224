package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

// write draws one picture.
func (g *glance) write(w *term.Writer) error {
	if err := g.head(w); err != nil {
		return err
	}
	if len(g.endpoints) == 0 {
		_, err := fmt.Fprintln(w, "No endpoints: none is configured, and nothing was sent yet.")
		return err
	}
	return g.table(w)
}

// part is a piece of the head: a label and its value.
type part struct {
	label, value string
	color        term.Color
}

func (g *glance) head(w *term.Writer) error {
	ready := part{"", "ready", term.Good}
	if !g.status.Ready {
		ready = part{"", "NOT READY", term.Bad}
	}
	var b strings.Builder
	flow(&b, w, []part{
		{"postern", g.status.Version, term.Strong}, {"", shortID(g.status.InstanceID), term.Faint}, ready, {"", g.now().Local().Format("15:04:05"), term.Faint},
	})
	for _, reason := range g.status.Reasons {
		fold(&b, w, reason)
	}
	flow(&b, w, []part{
		{"waiting", fmt.Sprint(g.status.Pending), ""}, {"in flight", fmt.Sprint(g.status.InFlight), ""},
		{"failed", fmt.Sprint(g.status.AwaitingRetry), some(g.status.AwaitingRetry, term.Warn)},
		{"dead", fmt.Sprint(g.status.DeadLetter), some(g.status.DeadLetter, term.Bad)},
		{"oldest", g.oldest(), ""}, {"delivered/min", rate(g.activity.DeliveredPerMinute), ""}, {"failed/min", rate(g.activity.FailedPerMinute), ""},
		{"spool", spoolSize(g.status), ""}, readSync(g.status.Sync).brief(),
	})
	if g.problem != nil {
		fold(&b, w, "NO ANSWER: "+firstLine(g.problem.Error()))
	}
	b.WriteByte('\n')
	_, err := w.Write([]byte(b.String()))
	return err
}

// flow writes parts side by side, and goes on below where the terminal ends.
func flow(b *strings.Builder, w *term.Writer, parts []part) {
	used := 0
	for _, p := range parts {
		label, value := p.label, term.Clean(p.value)
		if label != "" {
			label += " "
		}
		width := utf8.RuneCountInString(label + value)
		switch {
		case used > 0 && w.Width > 0 && used+2+width > w.Width:
			b.WriteByte('\n')
			used = 0
		case used > 0:
			b.WriteString("  ")
			used += 2
		}
		b.WriteString(w.Paint(term.Faint, label) + w.Paint(p.color, value))
		used += width
	}
	b.WriteByte('\n')
}

// fold writes what is wrong in words, and goes on below where the terminal ends.
func fold(b *strings.Builder, w *term.Writer, text string) {
	line := ""
	for _, word := range strings.Fields(term.Clean(text)) {
		if line != "" && w.Width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > w.Width {
			b.WriteString(w.Paint(term.Bad, line) + "\n")
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	b.WriteString(w.Paint(term.Bad, line) + "\n")
}

func (g *glance) oldest() string {
	if g.status.OldestPending == nil {
		return "-"
	}
	return term.Age(g.now().Sub(*g.status.OldestPending))
}

func rate(n float64) string {
	if n < 10 && n != float64(int(n)) {
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

func shortID(id string) string { return id[:min(8, len(id))] }

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// table has the most troubled endpoint first, then the one with the longest queue.
func (g *glance) table(w *term.Writer) error {
	now := g.now()
	type ranked struct {
		client.Endpoint
		trouble trouble
	}
	list := make([]ranked, 0, len(g.endpoints))
	for _, e := range g.endpoints {
		list = append(list, ranked{e, worst(e, g.trends[e.Name], now)})
	}
	slices.SortStableFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.trouble.rank, a.trouble.rank), cmp.Compare(depth(b.Endpoint), depth(a.Endpoint)), cmp.Compare(a.Name, b.Name))
	})
	table := term.NewTable(term.Column{Title: "ENDPOINT", Cut: true}, term.Column{Title: "STATE"}, term.Column{Title: "QUEUE", Right: true},
		term.Column{Title: "DEAD", Right: true}, term.Column{Title: "P50", Right: true, Extra: true}, term.Column{Title: "P95", Right: true},
		term.Column{Title: "P99", Right: true, Extra: true}, term.Column{Title: "WHAT IS WRONG", Cut: true})
	for _, e := range list {
		state := breakerCell(e.Breaker.State)
		if e.Paused {
			state = term.Cell{Text: "paused", Color: term.Warn}
		}
		table.Row(term.Cell{Text: e.Name}, state, term.Cell{Text: fmt.Sprint(depth(e.Endpoint))},
			term.Cell{Text: fmt.Sprint(e.Queue.DeadLetter), Color: some(e.Queue.DeadLetter, term.Bad)},
			term.Cell{Text: latency(e.P50Ms)}, term.Cell{Text: latency(e.P95Ms)}, term.Cell{Text: latency(e.P99Ms)},
			term.Cell{Text: e.trouble.text, Color: e.trouble.color})
	}
	return table.Write(w)
}

func depth(e client.Endpoint) int64 {
	return e.Queue.Pending + e.Queue.AwaitingRetry + e.Queue.InFlight
}

// trouble is what is wrong with an endpoint; the worst has the highest rank, and nothing wrong is zero. The ranks are
// those of the dashboard.
type trouble struct {
	rank  int
	text  string
	color term.Color
}

// worst finds the one that a person should know first.
func worst(e client.Endpoint, t client.Trend, now time.Time) trouble {
	throttled := e.Limiter.ThrottledUntil
	switch {
	case e.ShareFull:
		return trouble{105, shareFull, term.Bad}
	case e.Breaker.State == "open":
		return trouble{100, fmt.Sprintf("%d failures in a row, next try %s", e.Breaker.ConsecutiveFailures, nextTry(e.Breaker, now)), term.Bad}
	case e.Paused:
		return trouble{90, cmp.Or(e.PauseReason, "paused"), term.Warn}
	case e.Breaker.State == "half_open":
		return trouble{80, "one attempt at a time tries it", term.Warn}
	case e.TLSError != "":
		return trouble{70, "TLS files not usable: " + e.TLSError, term.Warn}
	case throttled != nil && throttled.After(now):
		return trouble{60, "said 429, next in " + term.Age(throttled.Sub(now)), term.Warn}
	case t.State == "slowing" && t.EarlierP95 > 0:
		return trouble{50, fmt.Sprintf("%.1f times slower than usual (p95 %s)", t.RecentP95/t.EarlierP95, term.Millis(t.RecentP95)), term.Warn}
	case e.Breaker.ConsecutiveFailures > 0:
		return trouble{40, fmt.Sprintf("%d of %d failures in a row", e.Breaker.ConsecutiveFailures, e.Breaker.FailureThreshold), term.Warn}
	case e.Queue.DeadLetter > 0:
		return trouble{30, term.Count(e.Queue.DeadLetter, "dead letter"), term.Plain}
	}
	return trouble{}
}

func nextTry(b client.Breaker, now time.Time) string {
	if b.OpenedAt == nil {
		return "soon"
	}
	if at := opensUntil(b); at.After(now) {
		return "in " + term.Age(at.Sub(now))
	}
	return "now"
}
