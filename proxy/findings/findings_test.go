package findings

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// over makes an analysis of the last hours before noon.
func over(hours int) *Accumulator { return New(noon.Add(-time.Duration(hours)*time.Hour), noon) }

// letter died ago before noon.
func letter(ago time.Duration, status int, class string) Letter {
	return Letter{Endpoint: "partner-a", DeadAt: noon.Add(-ago), StatusCode: status, Error: class, Attempts: 5}
}

func addAll(a *Accumulator, letters ...Letter) *Accumulator {
	for _, l := range letters {
		a.Add(l)
	}
	return a
}

// every makes n letters, the first one start before noon, the others each step later.
func every(n int, start, step time.Duration, status int, class string) (out []Letter) {
	for i := range n {
		out = append(out, letter(start-time.Duration(i)*step, status, class))
	}
	return out
}

func TestSummary(t *testing.T) {
	a := addAll(over(24),
		Letter{"b", noon.Add(-3 * time.Hour), 503, "http_503", 5},
		Letter{"b", noon.Add(-1 * time.Hour), 0, "timeout", 4},
		Letter{"b", noon.Add(-2 * time.Hour), 503, "http_503", 5},
		Letter{"c", noon.Add(-time.Minute), 0, "timeout", 1},
		Letter{"a", noon.Add(-time.Minute), 0, "connect", 1},
		Letter{"a", noon.Add(-25 * time.Hour), 0, "connect", 1}, // before the window
		Letter{"a", noon, 0, "connect", 1},                      // the window is half open
	)
	got := a.Result()
	var names []string
	for _, analysis := range got {
		names = append(names, analysis.Endpoint)
	}
	if !slices.Equal(names, []string{"b", "a", "c"}) {
		t.Fatalf("order %v, want the most dead letters first, then by name", names)
	}
	text, err := json.Marshal(got[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"endpoint":"b","dead_count":3,"primary_error":"http_503","primary_status_code":503,` +
		`"first_dead":"2026-03-14T09:00:00Z","last_dead":"2026-03-14T11:00:00Z","avg_attempts":4.67,"findings":[]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if got[1].DeadCount != 1 || got[1].PrimaryStatusCode != nil {
		t.Errorf("a: %+v", got[1])
	}
}

func TestNoLettersIsAnEmptyList(t *testing.T) {
	if got := over(24).Result(); got == nil || len(got) != 0 {
		t.Errorf("Result() = %#v, want an empty list that is not nil", got)
	}
}

func TestTiesAreBrokenStably(t *testing.T) {
	letters := []Letter{
		letter(time.Hour, 0, "timeout"), letter(2*time.Hour, 0, "connect"),
		letter(3*time.Hour, 200, "body_rule"), letter(4*time.Hour, 201, "body_rule"),
		letter(5*time.Hour, 0, "timeout"), letter(6*time.Hour, 0, "connect"),
	}
	for range 50 { // maps start at random places
		got := addAll(over(24), letters...).Result()[0]
		if got.PrimaryError != "body_rule" || *got.PrimaryStatusCode != 200 {
			t.Fatalf("primary %s, %v", got.PrimaryError, *got.PrimaryStatusCode)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		name    string
		hours   int
		letters []Letter
		want    []Pattern
		says    string // in an action
	}{
		{"49 in an hour are no cluster", 24, every(49, 59*time.Minute, time.Minute, 503, "http_503"), nil, ""},
		{"50 in 59 minutes", 24, every(50, 200*time.Minute, 72*time.Second, 503, "http_503"), []Pattern{Cluster}, "retry window"},
		{"50 in exactly an hour", 24, every(50, 200*time.Minute, time.Hour/49, 0, "timeout"), []Pattern{Cluster}, "retry window"},
		{"50 in a little more than an hour", 24, every(50, 200*time.Minute, time.Hour/49+time.Second, 0, "timeout"), nil, ""},
		{"the hour need not begin at :00", 24, every(50, 90*time.Minute, time.Minute, 0, "connect"), []Pattern{Cluster}, "retry window"},
		{"one 401", 24, every(1, time.Hour, time.Hour, 401, "http_401"), []Pattern{Credentials}, "reset partner-a"},
		{"403 all day are not a trickle", 24, every(8, 23*time.Hour, 3*time.Hour, 403, "http_403"), []Pattern{Credentials}, "Renew"},
		{"a crowd of 401", 24, every(60, time.Hour, time.Minute, 401, "http_401"), []Pattern{Cluster, Credentials}, "http_401"},
		{"one 429", 24, every(1, time.Hour, time.Hour, 429, "http_429"), []Pattern{Throttled}, "limits"},
		{"three over a day", 24, every(3, 20*time.Hour, 8*time.Hour, 0, "timeout"), []Pattern{Trickle}, "most of them ran into it"},
		{"eight over a day", 24, every(8, 23*time.Hour, 3*time.Hour, 502, "http_502"), []Pattern{Trickle}, "Raise retry.max_attempts for this endpoint, or shorten its timeout"},
		{"49 over a day", 24, every(49, 23*time.Hour, 28*time.Minute, 502, "http_502"), []Pattern{Trickle}, ""},
		{"50 over a day are not a few", 24, every(50, 23*time.Hour, 27*time.Minute, 502, "http_502"), nil, ""},
		{"two are too few to be even", 24, every(2, 20*time.Hour, 18*time.Hour, 0, "timeout"), nil, ""},
		{"all in the last hours are not even", 24, every(8, 8*time.Hour, time.Hour, 0, "timeout"), nil, ""},
		{"most in one hour are not even", 24, append(every(6, 23*time.Hour, 4*time.Hour, 0, "timeout"), every(6, 610*time.Minute, time.Minute, 0, "timeout")...), nil, ""},
		{"404 is no matter of patience", 24, withAttempts(1, every(8, 23*time.Hour, 3*time.Hour, 404, "http_404")), nil, ""},
		{"a status that was retried is", 24, withAttempts(5, every(8, 23*time.Hour, 3*time.Hour, 409, "http_409")), []Pattern{Trickle}, ""},
		{"a class that no retry was allowed for is", 24, withAttempts(1, every(8, 23*time.Hour, 3*time.Hour, 200, "body_rule")), []Pattern{Trickle}, ""},
		{"two a day for a week", 168, every(14, 167*time.Hour, 12*time.Hour, 0, "tls"), []Pattern{Trickle}, "days"},
		{"a few in a month are rarer than a trickle", 720, every(6, 700*time.Hour, 110*time.Hour, 0, "timeout"), nil, ""},
		{"an outage beside a trickle", 24, append(every(8, 23*time.Hour, 3*time.Hour, 502, "http_502"), every(300, 10*time.Hour, 10*time.Second, 0, "connect")...), []Pattern{Cluster, Trickle}, "retry window"},
		{"an outage alone is no trickle", 24, every(60, 10*time.Hour, time.Minute, 0, "connect"), []Pattern{Cluster}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := addAll(over(tc.hours), tc.letters...).Result()[0].Findings
			var patterns []Pattern
			var texts strings.Builder
			for _, f := range got {
				patterns = append(patterns, f.Pattern)
				texts.WriteString(f.Message + " " + f.Action + "\n")
				if f.Message == "" || f.Action == "" || f.Count == 0 || f.Until.Before(f.From) {
					t.Errorf("incomplete: %+v", f)
				}
			}
			if !slices.Equal(patterns, tc.want) {
				t.Fatalf("patterns %v, want %v", patterns, tc.want)
			}
			if !strings.Contains(texts.String(), tc.says) {
				t.Errorf("nothing says %q:\n%s", tc.says, texts.String())
			}
		})
	}
}

func withAttempts(n int, letters []Letter) []Letter {
	for i := range letters {
		letters[i].Attempts = n
	}
	return letters
}

func TestClusterCountsItsDensestHour(t *testing.T) {
	a := addAll(over(24), every(50, 20*time.Hour, time.Minute, 0, "connect")...)
	addAll(a, every(70, 10*time.Hour, 30*time.Second, 0, "connect")...)
	f := a.Result()[0].Findings[0]
	if f.Count != 70 || !f.From.Equal(noon.Add(-10*time.Hour)) || f.Until.Sub(f.From) != 69*30*time.Second {
		t.Errorf("cluster %+v, want the 70 from 02:00", f)
	}
}

func TestSuggestedLimitComesFromTheTraffic(t *testing.T) {
	a := over(24)
	a.Answer("partner-a", noon.Add(-2*time.Hour), 200) // before any letter: not looked at
	addAll(a, every(3, 3*time.Hour, time.Minute, 429, "http_429")...)
	addAll(a, Letter{Endpoint: "calm", DeadAt: noon.Add(-time.Hour), StatusCode: 503, Error: "http_503"})
	answers := func(ago time.Duration, taken, refused int) {
		for range taken {
			a.Answer("partner-a", noon.Add(-ago), 200)
		}
		for range refused {
			a.Answer("partner-a", noon.Add(-ago), 429)
		}
	}
	answers(180*time.Minute, 90, 5)
	answers(179*time.Minute, 100, 40)
	answers(178*time.Minute, 110, 40)
	answers(177*time.Minute, 500, 0) // nothing refused: tells no limit
	a.Answer("partner-a", noon.Add(-178*time.Minute), 0)
	a.Answer("partner-a", noon.Add(time.Minute), 429)
	a.Answer("calm", noon.Add(-time.Hour), 429)

	f := a.Result()[0].Findings[0]
	if f.SuggestedLimit != "100/1m" || !strings.Contains(f.Action, `"100/1m"`) || !strings.Contains(f.Action, "--rate 0.83") {
		t.Errorf("finding %+v", f)
	}
	if a.endpoints["calm"].minutes != nil {
		t.Error("an endpoint without 429 letters takes memory for its traffic")
	}
}

func TestReplayRate(t *testing.T) {
	for perMinute, want := range map[int]string{1: "0.0083", 60: "0.5", 1200: "10", 600000: "5000"} {
		if got := perSecond(perMinute); got != want {
			t.Errorf("perSecond(%d) = %s, want %s", perMinute, got, want)
		}
	}
}

// TestOrderDoesNotMatter and the hour windows are checked against the plainest possible reckoning.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.Custom(func(t *rapid.T) Letter {
			return Letter{
				Endpoint:   rapid.SampledFrom([]string{"a", "b"}).Draw(t, "endpoint"),
				DeadAt:     noon.Add(-time.Duration(rapid.IntRange(-10, 30*60).Draw(t, "minutes")) * time.Minute),
				StatusCode: rapid.SampledFrom([]int{0, 401, 429, 500}).Draw(t, "status"),
				Error:      rapid.SampledFrom([]string{"timeout", "connect", "http_500"}).Draw(t, "class"),
				Attempts:   rapid.IntRange(1, 5).Draw(t, "attempts"),
			}
		})
		letters := rapid.SliceOfN(one, 0, 200).Draw(t, "letters")
		shuffled := rapid.Permutation(letters).Draw(t, "shuffled")
		a, b := addAll(over(24), letters...).Result(), addAll(over(24), shuffled...).Result()
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("the order of the letters shows:\n%+v\n%+v", a, b)
		}
	})
}

func TestDenseHoursAgainstAllWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(0, 4*hour), 1, 200).Draw(t, "times")
		slices.Sort(times)
		most := 0
		dense := make(map[int64]bool)
		for i, from := range times {
			n := 0
			for _, at := range times[i:] {
				if at-from < hour {
					n++
				}
			}
			most = max(most, n)
			for _, at := range times[i : i+n] {
				dense[at] = dense[at] || n >= ClusterSize
			}
		}
		if got := len(densestHour(times)); got != most {
			t.Fatalf("densest hour %d, want %d", got, most)
		}
		isDense := denseHours(times)
		for _, at := range times {
			if isDense(at) != dense[at] {
				t.Fatalf("dense at %d: %v, want %v", at, isDense(at), dense[at])
			}
		}
	})
}

func BenchmarkHundredThousandLetters(b *testing.B) {
	for b.Loop() {
		a := over(720)
		for i := range 100_000 {
			a.Add(letter(time.Duration(i)*7*time.Second, 503, "http_503"))
		}
		a.Result()
	}
}
