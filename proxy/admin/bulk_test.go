package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"postern/proxy/admin"
	"postern/spool"
)

// letters replaces the rig's events by n dead letters, dl_000 and so on.
func (r *rig) letters(n int) *rig {
	r.spool.views = nil
	for i := range n {
		r.spool.views = append(r.spool.views, spool.View{
			Event: spool.Event{ID: fmt.Sprintf("dl_%03d", i), Endpoint: "partner-a", Named: true, Method: "GET", AcceptedAt: at(20, 0)},
			Progress: spool.Progress{Attempts: 5, DeadAt: at(21, 0), DeadReason: spool.ReasonExhausted,
				History: []spool.Attempt{{Number: 5, StatusCode: 503, Error: "http_503"}}},
			State: spool.StateDeadLetter,
		})
	}
	return r
}

// after calls f within the n-th change, before it is made.
func (f *fakeSpool) after(n int, do func()) {
	f.change = func() {
		if n--; n == 0 {
			do()
		}
	}
}

func (r *rig) bulk(call, body string) *httptest.ResponseRecorder {
	return r.do("POST", "/api/v1/dead-letters/"+call, body)
}

func TestFiltersSelectTheSameEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			query, body string
			want        []string
		}{
			{"", `{}`, []string{"evt_expired", "evt_dead"}},
			{"endpoint=partner-a", `{"endpoint":"partner-a"}`, []string{"evt_dead"}},
			{"status=503", `{"status":503}`, []string{"evt_dead"}},
			{"status=500", `{"status":500}`, nil},
			{"error=http_503", `{"error":"http_503"}`, []string{"evt_dead"}},
			{"since=90m", `{"since":"90m"}`, []string{"evt_expired"}},
			{"since=1d", `{"since":"1d"}`, []string{"evt_expired", "evt_dead"}},
			{"until=90m", `{"until":"90m"}`, []string{"evt_dead"}},
			{"since=1999-12-31T22:00:00Z&until=1999-12-31T23:00:00Z", `{"since":"1999-12-31T22:00:00Z","until":"1999-12-31T23:00:00Z"}`, []string{"evt_dead"}},
			{"since=2000-01-01T00:30:00+01:30", `{"since":"2000-01-01T00:30:00+01:30"}`, []string{"evt_expired"}},
		} {
			r := newRig(t)
			var page struct {
				Letters []struct{ ID string } `json:"dead_letters"`
			}
			w := r.do("GET", "/api/v1/dead-letters?"+strings.ReplaceAll(tc.query, " ", "%20"), "")
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			var listed []string
			for _, letter := range page.Letters {
				listed = append(listed, letter.ID)
			}
			if !slices.Equal(listed, tc.want) {
				t.Errorf("GET ?%s lists %v, want %v", tc.query, listed, tc.want)
			}
			dry := strings.Replace(strings.Replace(tc.body, "{", `{"dry_run":true,`, 1), ",}", "}", 1)
			for call, word := range map[string]string{"replay": "replayed", "purge": "purged"} {
				want := fmt.Sprintf(`{"matched":%d,%q:0,"dry_run":true,`, len(tc.want), word)
				if w := r.bulk(call, dry); w.Code != 200 || !strings.HasPrefix(w.Body.String(), want) {
					t.Errorf("%s %s: %d %s, want %s", call, dry, w.Code, w.Body, want)
				}
			}
			if got := r.spool.made(); len(got) > 0 {
				t.Errorf("a dry run changed something: %v", got)
			}
			r.want(r.bulk("replay", tc.body), 200, fmt.Sprintf(`{"matched":%d,"replayed":%[1]d,"dry_run":false}`, len(tc.want)))
			got := r.spool.made()
			slices.Sort(got)
			want := slices.Clone(tc.want)
			for i := range want {
				want[i] = "retry dead " + want[i]
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s replays %v, want %v", tc.body, got, want)
			}
		}
	})
}

// TestWhatWasCountedCanBeSelectedAgain: a dry run says between which moments it counted, so that what dies after it, or
// is older by then, changes nothing.
func TestWhatWasCountedCanBeSelectedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct{ name, body, since, until string }{
			{"everything", `{"dry_run":true}`, "", "2000-01-01T00:00:00Z"},
			{"a span back", `{"dry_run":true,"since":"24h","until":"30m"}`, "1999-12-31T00:00:00Z", "1999-12-31T23:30:00Z"},
			{"a clock that was set back", `{"dry_run":true,"since":"3h"}`, "1999-12-31T21:00:00Z", "2000-01-01T05:00:00.000001Z"},
		} {
			r := newRig(t).letters(3)
			if strings.Contains(tc.name, "clock") {
				r.spool.views[2].DeadAt = time.Date(2000, 1, 1, 5, 0, 0, 0, time.UTC)
			}
			var counted struct{ Since, Until string }
			if err := json.Unmarshal(r.bulk("purge", tc.body).Body.Bytes(), &counted); err != nil {
				t.Fatal(err)
			}
			if counted.Since != tc.since || counted.Until != tc.until {
				t.Errorf("%s: counted %+v, want %s to %s", tc.name, counted, tc.since, tc.until)
			}
			r.spool.views = append(r.spool.views, r.spool.views[0])
			r.spool.views[3].ID, r.spool.views[3].DeadAt = "dl_late", time.Date(2000, 1, 1, 6, 0, 0, 0, time.UTC)
			r.want(r.bulk("purge", `{"until":"`+counted.Until+`"}`), 200, `{"matched":3,"purged":3,"dry_run":false}`)
		}
	})
}

// TestOnlyDeadLettersAreTouched: an event that somebody replays while a bulk call is on its way is live again.
func TestOnlyDeadLettersAreTouched(t *testing.T) {
	for call, word := range map[string]string{"replay": "replayed", "purge": "purged"} {
		// The last moment: after the call was sent, and before the spool does it.
		r := newRig(t).letters(1)
		r.spool.after(1, func() { r.spool.views[0].State = spool.StatePending })
		r.want(r.bulk(call, `{}`), 200, `{"matched":1,"`+word+`":0,"dry_run":false}`)

		r = newRig(t).letters(200)
		r.spool.after(1, func() { r.spool.views[r.spool.index("dl_199")].State = spool.StatePending })
		r.want(r.bulk(call, `{}`), 200, `{"matched":200,"`+word+`":199,"dry_run":false}`)
		for _, made := range r.spool.made() {
			if strings.HasSuffix(made, "dl_199") {
				t.Errorf("%s touched a live event", call)
			}
		}
	}
}

func TestABulkCallThatFailsSaysHowFarItCame(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault func(r *rig)
		says  string
		most  int // a stop is noticed a little later than a refusal
	}{
		{"the disk", func(r *rig) { r.spool.fail = spool.ErrUnwritable }, "disk refuses writes", 10},
		{"a stop", func(r *rig) { r.handler.Close() }, "ended before it was done", 999},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t).letters(1000)
			r.spool.after(11, func() { tc.fault(r) })
			w := r.bulk("replay", `{}`)
			n := len(r.spool.made())
			r.refused(w, 503, tc.says, fmt.Sprintf("%d of 1000 dead letters were replayed", n))
			if n < 10 || n > tc.most {
				t.Errorf("%d were replayed although it broke at the 11th", n)
			}
			if !strings.Contains(r.log.String(), fmt.Sprintf("done=%d", n)) {
				t.Errorf("log: %s", r.log)
			}
		})
	}
}

// progress is what GET dead-letters/replays/{id} shows.
type progress struct {
	ID, State                  string
	Matched, Replayed, Skipped int
	Rate                       float64
	StartedAt                  time.Time  `json:"started_at"`
	FinishedAt                 *time.Time `json:"finished_at"`
	Error                      *string
}

func (r *rig) progress(id string) (p progress) {
	r.t.Helper()
	synctest.Wait()
	w := r.do("GET", "/api/v1/dead-letters/replays/"+id, "")
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 200 {
		r.t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	return p
}

// start begins a paced replay and returns its ID.
func (r *rig) start(body string) string {
	r.t.Helper()
	w := r.bulk("replay", body)
	var started struct {
		ID      string
		Started bool
	}
	if err := json.Unmarshal(w.Body.Bytes(), &started); err != nil || w.Code != 202 || !started.Started {
		r.t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	if got := w.Header().Get("Location"); got != "/api/v1/dead-letters/replays/"+started.ID {
		r.t.Errorf("Location %s", got)
	}
	return started.ID
}

func TestPacedReplay(t *testing.T) {
	for _, rate := range []string{`2`, `2.0`, `"2"`, `"120/1m"`, `"2/1s"`} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t).letters(10)
			id := r.start(`{"rate":` + rate + `}`)
			for _, step := range []struct {
				wait     time.Duration
				replayed int
				state    string
			}{
				{0, 1, "running"}, {499 * time.Millisecond, 1, "running"}, {2 * time.Millisecond, 2, "running"},
				{3 * time.Second, 8, "running"}, {998 * time.Millisecond, 9, "running"}, {2 * time.Millisecond, 10, "done"},
			} {
				time.Sleep(step.wait) // the bubble's clock: no time passes
				p := r.progress(id)
				if p.Replayed != step.replayed || p.State != step.state || p.Matched != 10 || p.Rate != 2 || p.Skipped != 0 {
					t.Errorf("%v later: %+v, want %d, %s", step.wait, p, step.replayed, step.state)
				}
				if (p.FinishedAt != nil) != (step.state == "done") || p.Error != nil {
					t.Errorf("%v later: %+v", step.wait, p)
				}
			}
			if w := r.do("GET", "/api/v1/dead-letters/replays", ""); !strings.Contains(w.Body.String(), `{"replays":[{"id":"`+id+`"`) {
				t.Errorf("the list: %s", w.Body)
			}
		})
	}
}

// TestPaceIsNeverExceeded holds for rates above the timer's grain and for a disk that stalls.
func TestPaceIsNeverExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).letters(900)
		start, n := time.Now(), 0
		r.spool.stall = func() {
			if time.Since(start) > time.Second && time.Since(start) < 1100*time.Millisecond {
				time.Sleep(time.Second) // the bubble's clock
			}
		}
		r.spool.change = func() {
			if earliest := time.Duration(n) * time.Second / 300; time.Since(start) < earliest-time.Microsecond {
				t.Errorf("event %d after %v, not before %v", n, time.Since(start), earliest)
			}
			n++
		}
		id := r.start(`{"rate":300}`)
		time.Sleep(4 * time.Second)
		if p := r.progress(id); p.State != "done" || p.Replayed != 900 || p.FinishedAt.Sub(p.StartedAt) > 3100*time.Millisecond {
			t.Errorf("%+v", p)
		}
	})
}

func TestPacedReplayIsStoppedByAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).letters(10)
		id := r.start(`{"rate":1}`)
		time.Sleep(2500 * time.Millisecond)
		if w := r.do("DELETE", "/api/v1/dead-letters/replays/"+id, ""); w.Code != 202 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if p := r.progress(id); p.State != "stopped" || p.Replayed != 3 || p.FinishedAt == nil || p.Skipped != 0 {
			t.Errorf("%+v", p)
		}
		time.Sleep(time.Minute)
		if n := len(r.spool.made()); n != 3 {
			t.Errorf("%d were replayed in the end", n)
		}
	})
}

func TestPacedReplayEndsWithPostern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).letters(10)
		id := r.start(`{"rate":1}`)
		time.Sleep(500 * time.Millisecond)
		r.handler.Close()
		if p := r.progress(id); p.State != "stopped" || p.Replayed != 1 {
			t.Errorf("%+v", p)
		}
		r.refused(r.bulk("replay", `{"rate":1}`), 503, "stopping")
	})
}

func TestPacedReplaySkipsWhatIsNoDeadLetterAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).letters(3)
		id := r.start(`{"rate":1}`)
		synctest.Wait()
		r.do("DELETE", "/api/v1/events/dl_001", "")
		time.Sleep(3 * time.Second)
		if p := r.progress(id); p.State != "done" || p.Replayed != 2 || p.Skipped != 1 {
			t.Errorf("%+v", p)
		}
	})
}

func TestPacedReplayThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for err, says := range map[error]string{spool.ErrUnwritable: "disk refuses writes", errUnheardOf: "log"} {
			r := newRig(t).letters(3)
			r.spool.after(2, func() { r.spool.fail = err })
			id := r.start(`{"rate":1}`)
			time.Sleep(5 * time.Second)
			p := r.progress(id)
			if p.State != "failed" || p.Replayed != 1 || p.Error == nil || !strings.Contains(*p.Error, says) {
				t.Errorf("%+v", p)
			}
		}
	})
}

var errUnheardOf = fmt.Errorf("bit rot in %s", secretBody)

func TestPacedReplaysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).letters(20)
		first := r.start(`{"rate":0.001}`)
		synctest.Wait()
		for range 30 {
			r.start(`{"rate":100,"endpoint":"nobody"}`) // ends at once
			synctest.Wait()
		}
		var list struct{ Replays []progress }
		w := r.do("GET", "/api/v1/dead-letters/replays", "")
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		if n := len(list.Replays); n > 22 || list.Replays[n-1].ID != first {
			t.Errorf("%d are remembered; the one that runs must be among them", n)
		}
		for range 3 {
			r.start(`{"rate":0.001}`)
			synctest.Wait()
		}
		r.refused(r.bulk("replay", `{"rate":0.001}`), 409, "stop one")
		r.want(r.bulk("replay", `{"dry_run":true,"rate":1}`), 200, `{"matched":16,"replayed":0,"dry_run":true,"until":"2000-01-01T00:00:00Z"}`)
	})
}

func TestCloseTwice(t *testing.T) {
	h := admin.New(newRig(t).parts)
	h.Close()
	h.Close()
}
