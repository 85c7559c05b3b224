package bucket

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRingIsASortedList compares the ring with the plain sorted list that it stands for.
func TestRingIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var model []int64
		most := rapid.IntRange(1, 40).Draw(t, "most")
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				v := rapid.Int64Range(0, 100).Draw(t, "time")
				r.add(v, most)
				model = append(model, v)
				slices.Sort(model)
				model = model[max(len(model)-most, 0):]
			},
			"drop": func(t *rapid.T) {
				v := rapid.Int64Range(-1, 100).Draw(t, "older than")
				n := 0
				for n < len(model) && model[n] <= v {
					n++
				}
				if got := r.older(v); got != n {
					t.Fatalf("%d older than %d, want %d", got, v, n)
				}
				r.drop(n)
				model = model[n:]
			},
			"change the size": func(t *rapid.T) { most = rapid.IntRange(1, 40).Draw(t, "most") },
			"": func(t *rapid.T) {
				if r.n != len(model) {
					t.Fatalf("%d times, want %d", r.n, len(model))
				}
				for i, want := range model {
					if r.at(i) != want || r.newest(len(model)-i) != want {
						t.Fatalf("time %d is %d, want %d", i, r.at(i), want)
					}
				}
			},
		})
	})
}

func TestRingTakesNoMoreRoomThanItNeeds(t *testing.T) {
	var r ring
	for i := range int64(3) {
		r.add(i, 1000)
	}
	if len(r.buf) > 8 {
		t.Errorf("three times take room for %d", len(r.buf))
	}
	for i := range int64(5000) {
		r.add(i, 1000)
	}
	if len(r.buf) != 1000 {
		t.Errorf("the full ring has room for %d", len(r.buf))
	}
}
