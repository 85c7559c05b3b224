package quantile

import (
	"testing"
	"time"
)

func TestSlots(t *testing.T) {
	for name, budget := range map[string]int{"exact": 1000, "bucketed": 0} {
		t.Run(name, func(t *testing.T) {
			w := NewPool(budget).NewWindow()
			for i := range 10 {
				w.Add(start, time.Duration(i+1)*time.Second)                     // 12:10
				w.Add(start.Add(19*time.Minute), time.Duration(i+1)*time.Second) // 12:29
				w.Add(start.Add(20*time.Minute), time.Minute)                    // 12:30
			}
			w.Add(start.Add(-11*time.Minute), time.Hour) // late, of 11:59
			got := w.Slots(start.Add(time.Hour))
			noon := start.Truncate(time.Hour)
			want := []struct {
				start time.Time
				count int
				p50   time.Duration
			}{
				{noon.Add(-30 * time.Minute), 1, time.Hour},
				{noon, 20, 5500 * time.Millisecond},
				{noon.Add(30 * time.Minute), 10, time.Minute},
			}
			if len(got) != len(want) {
				t.Fatalf("%d slots: %+v", len(got), got)
			}
			for i, w := range want {
				s := got[i]
				if !s.Start.Equal(w.start) || s.Count != w.count || !near(s.P50, w.p50, s.Exact) {
					t.Errorf("slot %d: %+v, want %+v", i, s, w)
				}
			}
		})
	}
}

func TestADayHasFortyNineSlotsAtMost(t *testing.T) {
	var w Window
	if got := w.Slots(start); len(got) != 0 {
		t.Errorf("an empty window has %+v", got)
	}
	for i := range 5 * 24 * 60 {
		w.Add(start.Add(time.Duration(i)*time.Minute), time.Second)
	}
	got := w.Slots(start.Add((5*24*60 - 1) * time.Minute))
	n := 0
	for _, s := range got {
		n += s.Count
	}
	if len(got) != 49 || n != 24*60 {
		t.Errorf("%d slots with %d samples", len(got), n)
	}
}
