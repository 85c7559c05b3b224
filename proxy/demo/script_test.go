package demo

import (
	"testing"
	"time"
)

func TestRoles(t *testing.T) {
	s := quick()
	roles := make(map[string]role)
	for _, r := range s.roles {
		roles[r.name] = r
	}
	for _, c := range []struct {
		role string
		v    visit
		want int
	}{
		{"steady", visit{}, 200},
		{"refusing", visit{}, 401},
		{"by-url", visit{}, 200},
		{"comes-back", visit{since: s.dead - 1}, 0},
		{"comes-back", visit{since: s.dead}, 200},
		{"throttled", visit{burst: s.perWindow}, 200},
		{"throttled", visit{burst: s.perWindow + 1}, 429},
		{"flaky", visit{id: "x", nth: 2}, 200},
	} {
		if got := roles[c.role].answer(c.v); got.status != c.want {
			t.Errorf("%s answers %+v with %d, want %d", c.role, c.v, got.status, c.want)
		}
	}
	failed := 0
	for i := range 1000 {
		id := "evt_" + time.Duration(i).String()
		if roles["flaky"].answer(visit{id: id, nth: 1}).status == 503 {
			failed++
		}
		if after := roles["slow"].answer(visit{id: id}).after; after < 150*time.Millisecond || after > 550*time.Millisecond {
			t.Errorf("slow waits %s", after)
		}
	}
	if failed < 300 || failed > 700 {
		t.Errorf("flaky failed %d of 1000, want about half", failed)
	}
}

func TestReceiversCountOnce(t *testing.T) {
	r, err := startReceivers(quick())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if v := r.visit("steady", "a"); v.nth != 1 || v.burst != 1 {
		t.Errorf("first visit %+v", v)
	}
	if v := r.visit("steady", "a"); v.nth != 2 || v.burst != 2 {
		t.Errorf("second visit %+v", v)
	}
	for _, status := range []int{503, 200, 200} {
		r.answered("steady", "a", answer{status: status})
	}
	r.answered("refusing", "b", answer{status: 401})
	if requests, taken := r.counts("steady"); requests != 2 || taken != 1 {
		t.Errorf("%d requests, %d taken", requests, taken)
	}
	if requests, taken := r.sum(); requests != 2 || taken != 1 {
		t.Errorf("sum: %d requests, %d taken", requests, taken)
	}
	if missing := r.unseen([]string{"a", "b", "c"}); len(missing) != 1 || missing[0] != "c" {
		t.Errorf("unseen: %v", missing)
	}
}
