package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"postern/spool/internal/layout"
	"postern/spool/internal/pagefile"
)

// leaves finds the pages of a bucket that has numbers for keys, and the numbers on each, in their order.
func leaves(t *testing.T, file []byte, id layout.Bucket) (pages []uint64, seqs [][]uint64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := pagefile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.Walk(t.Context(), func(e pagefile.Entry) bool {
		if string(e.Bucket[0]) != id.String() {
			return true
		}
		if n := len(pages); n == 0 || pages[n-1] != e.Page {
			pages, seqs = append(pages, e.Page), append(seqs, nil)
		}
		seq, _ := layout.Seq(e.Key)
		seqs[len(seqs)-1] = append(seqs[len(seqs)-1], seq)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages, seqs
}

// rekeyedPage writes another key over that of an event on a page, if it is there.
func rekeyedPage(p []byte, from, to uint64) {
	if at := bytes.Index(p, layout.SeqKey(from)); at >= 0 {
		copy(p[at:], layout.SeqKey(to))
	}
}

// TestKeysThatLie flips bits of keys: of events, and of the branch page above them. No record is damaged, so that nothing
// may be lost; what is found under another number may be counted as doubtful.
func TestKeysThatLie(t *testing.T) {
	t.Parallel()
	file, waiting := wornSpecimen(t)
	pages, seqs := leaves(t, file, layout.Events)
	if len(pages) < 4 {
		t.Fatalf("too few pages: %v", pages)
	}
	onPage := func(i int, to func(seq uint64) uint64) func([]byte) {
		return func(harmed []byte) {
			seq := seqs[2][i]
			rekeyedPage(page(harmed, int(pages[2])), seq, to(seq))
		}
	}
	above := func(first uint64, to uint64) func([]byte) {
		return func(harmed []byte) {
			for n := 2; n < len(harmed)/pageSize; n++ {
				if p := page(harmed, n); binary.NativeEndian.Uint16(p[8:]) == 1 {
					rekeyedPage(p, first, to)
				}
			}
		}
	}
	last := len(seqs[2]) - 1
	for name, damage := range map[string]func([]byte){
		"an event's, far away":                 onPage(last/2, func(seq uint64) uint64 { return seq | 1<<40 }),
		"an event's, to that of a deleted one": onPage(last/2, func(uint64) uint64 { return 4 }),
		"a page's, raised":                     above(seqs[2][0], seqs[2][last]),
		"a page's, lowered":                    above(seqs[2][0], seqs[1][1]),
	} {
		t.Run(name, func(t *testing.T) {
			harmed := bytes.Clone(file)
			damage(harmed)
			report, got := salvaged(t, t.TempDir(), harmed)
			if lost, back := waiting.without(got), got.without(waiting); len(lost)+len(back) > 0 || report.Lost != 0 || report.Estimate || report.Doubtful > 1 || report.Damage == "" {
				t.Errorf("lost %v, back %v: %+v", lost, back, report)
			}
		})
	}
}

// TestSummaryThatLies: a delivered event's summary under the number of one that waits does not end that one.
func TestSummaryThatLies(t *testing.T) {
	t.Parallel()
	file, waiting := wornSpecimen(t)
	pages, seqs := leaves(t, file, layout.Done)
	harmed := bytes.Clone(file)
	seq := seqs[0][len(seqs[0])/2]
	rekeyedPage(page(harmed, int(pages[0])), seq, seq+1)
	report, got := salvaged(t, t.TempDir(), harmed)
	if lost, back := waiting.without(got), got.without(waiting); len(lost)+len(back) > 0 || report.Lost != 0 || report.Recovered != int64(len(waiting)) {
		t.Errorf("lost %v, back %v: %+v", lost, back, report)
	}
}

// TestLastCommit takes the newest meta page away, and with it what else is told.
func TestLastCommit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   func(r *rig)
		gone string // what the pages hold that are gone, too
		want SalvageReport
		ids  []string
	}{
		"delivered": {do: func(r *rig) { l := r.lease(endpointA, 1)[0]; r.finish(l, delivered(l)) }, want: SalvageReport{Recovered: 2}, ids: []string{"1", "2"}},
		"accepted":  {do: func(r *rig) { r.append(event("last", endpointA, "body")) }, want: SalvageReport{Recovered: 4}, ids: []string{"0", "1", "2", "last"}},
		"accepted, and lost with its page": {
			do:   func(r *rig) { r.append(event("last", endpointA, strings.Repeat("nowhere else", 2000))) },
			gone: "nowhere else", want: SalvageReport{Recovered: 3, Lost: 1, Estimate: true}, ids: []string{"0", "1", "2"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for i := range 3 {
				r.append(event(fmt.Sprint(i), endpointA, "body"))
			}
			tt.do(r)
			file := inUse(r)
			id, err := r.store.visibleID()
			r.must(err)
			clear(page(file, id%2)[:512])
			for n := 2; n < len(file)/pageSize && tt.gone != ""; n++ {
				if p := page(file, n); bytes.Contains(p, []byte(tt.gone)) {
					clear(p)
				}
			}
			report, got := salvaged(t, t.TempDir(), file)
			want := tt.want
			want.Unit, want.Damage, want.Pages, want.Kept = UnitEvents, report.Damage, report.Pages, report.Kept
			for _, id := range tt.ids {
				if !got[id] {
					t.Errorf("%s is missing of %v", id, got)
				}
			}
			if report != want || len(got) != len(tt.ids) {
				t.Errorf("%v, and %+v", got, report)
			}
		})
	}
}

// TestFate: what is sure of an event, by what was read of the file.
func TestFate(t *testing.T) {
	t.Parallel()
	const seq, next = 50, 100
	whole := []pagefile.Gap{}
	gap := func(ids ...layout.Bucket) (list []pagefile.Gap) {
		for _, id := range ids {
			list = append(list, pagefile.Gap{Bucket: [][]byte{id.Name()}})
		}
		return list
	}
	tests := map[string]struct {
		gaps    []pagefile.Gap
		has     []layout.Bucket // these have the event
		seq     uint64
		other   func(c *census)
		older   bool
		horizon uint64
		want    fate
		open    bool
	}{
		"nothing has it":                 {gaps: gap(layout.Events), want: fateFinished, open: true},
		"and nothing would have":         {gaps: gap(layout.Events, layout.Due, layout.IDs), open: true},
		"the list of IDs lost":           {gaps: gap(layout.Events, layout.IDs), want: fateFinished, open: true},
		"the list of what is due lost":   {gaps: gap(layout.Events, layout.Due), want: fateFinished, open: true},
		"traced":                         {gaps: gap(layout.Events, layout.Due), has: []layout.Bucket{layout.IDs}, want: fateUnfinished, open: true},
		"traced, without summaries":      {gaps: gap(layout.Events, layout.Due, layout.Done), has: []layout.Bucket{layout.IDs}, open: true},
		"traced, without those aside":    {gaps: gap(layout.Events, layout.Due, layout.Aside), has: []layout.Bucket{layout.IDs}, open: true},
		"traced, and missing":            {gaps: gap(layout.Due), has: []layout.Bucket{layout.IDs}, open: true},
		"traced, its summary lost":       {gaps: gap(layout.Due, layout.Done), has: []layout.Bucket{layout.IDs}},
		"due":                            {gaps: gap(layout.Events, layout.IDs), has: []layout.Bucket{layout.Due}, want: fateUnfinished, open: true},
		"due, and missing":               {gaps: whole, has: []layout.Bucket{layout.Due, layout.IDs}, open: true},
		"due, missing, and not traced":   {gaps: whole, has: []layout.Bucket{layout.Due}, want: fateFinished, open: true},
		"due, missing, IDs lost":         {gaps: gap(layout.IDs), has: []layout.Bucket{layout.Due}, open: true},
		"delivered":                      {gaps: gap(layout.Events), has: []layout.Bucket{layout.Done, layout.IDs}, want: fateFinished, open: true},
		"set aside":                      {gaps: gap(layout.Events), has: []layout.Bucket{layout.Aside, layout.IDs}, want: fateFinished, open: true},
		"delivered, and there":           {gaps: whole, has: []layout.Bucket{layout.Done, layout.Events, layout.IDs, layout.Due}},
		"there":                          {gaps: whole, has: []layout.Bucket{layout.Events, layout.IDs, layout.Due}, want: fateUnfinished},
		"another that is not due":        {gaps: gap(layout.Events, layout.IDs), other: func(c *census) { c.events.add(7) }, open: true},
		"another that is not traced":     {gaps: gap(layout.Events, layout.Due), other: func(c *census) { c.events.add(7) }, open: true},
		"another that is due in vain":    {gaps: []pagefile.Gap{{Bucket: [][]byte{layout.Events.Name()}, From: layout.SeqKey(seq)}, gap(layout.IDs)[0]}, other: func(c *census) { c.waiting.add(7) }, open: true},
		"another that is dead in vain":   {gaps: []pagefile.Gap{{Bucket: [][]byte{layout.Events.Name()}, From: layout.SeqKey(seq)}, gap(layout.IDs)[0]}, other: func(c *census) { c.dead.add(7) }, open: true},
		"another that is traced in vain": {gaps: []pagefile.Gap{{Bucket: [][]byte{layout.Events.Name()}, From: layout.SeqKey(seq)}, gap(layout.Due)[0]}, other: func(c *census) { c.traced.add(7) }, open: true},
		"of the last commit":             {gaps: whole, seq: next, older: true, want: fateNew, open: true},
		"from before it":                 {gaps: whole, older: true, want: fateFinished},
		"never given out":                {gaps: whole, seq: next},
		"never given out, in a gap":      {gaps: gap(layout.Events), seq: next, open: true},
		"later than all the rest":        {gaps: whole, seq: next, horizon: next + 1, open: true},
		"earlier than something":         {gaps: gap(layout.Events), horizon: next + 1, open: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := &census{counters: counters{nextSeq: next}, known: true, horizon: tt.horizon}
			n := max(tt.seq, seq)
			if tt.seq == 0 {
				n = seq
			}
			for _, id := range tt.has {
				map[layout.Bucket]*seqSet{
					layout.Due: &c.waiting, layout.IDs: &c.traced, layout.Done: &c.done, layout.Aside: &c.aside, layout.Events: &c.events,
				}[id].add(n)
			}
			if tt.other != nil {
				tt.other(c)
			}
			walk := pagefile.Report{Gaps: tt.gaps}
			for id := range layout.NumBuckets {
				walk.Buckets = append(walk.Buckets, id.Name())
			}
			c.settle(&walk, tt.older)
			if got, open := c.fate(n), c.open(layout.Events, layout.SeqKey(n)); got != tt.want || open != tt.open {
				t.Errorf("fate %d, open %v", got, open)
			}
		})
	}
}

// TestGaps: keys of any length bound a gap, and gaps come in any order.
func TestGaps(t *testing.T) {
	t.Parallel()
	name := layout.Events.Name()
	g := gapsOf(&pagefile.Report{Buckets: [][]byte{name}, Gaps: []pagefile.Gap{
		{Bucket: [][]byte{name}, From: layout.SeqKey(20), To: append(layout.SeqKey(29), 0)},
		{Bucket: [][]byte{name, layout.SeqKey(50)}}, // a record that looks like a bucket
		{Bucket: [][]byte{name}, From: append(layout.SeqKey(9), 0), To: layout.SeqKey(12)},
		{Bucket: [][]byte{name}, From: layout.SeqKey(11), To: layout.SeqKey(14)},
	}})
	var in []uint64
	for seq := range uint64(60) {
		if g.has(layout.Events, layout.SeqKey(seq)) {
			in = append(in, seq)
		}
	}
	if want := []uint64{10, 11, 12, 13, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 50}; !slices.Equal(in, want) || g.numbers(layout.Events, 1, 59) != int64(len(want)) {
		t.Errorf("%v, and %d numbers", in, g.numbers(layout.Events, 1, 59))
	}
	if !g.whole(layout.Events) && g.whole(layout.Due) {
		t.Error("a bucket that was not met is no gap")
	}
}
