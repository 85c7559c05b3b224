package pgstore

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func FuzzText(f *testing.F) {
	f.Add("plain", 10)
	f.Add("nul\x00 and \xff", 30)
	f.Add(strings.Repeat("é", 600), 1000)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 20 + int(uint(limit)%2000)
		got := text(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("%q", got)
		}
		if text(got, limit) != got {
			t.Errorf("what fits is changed: %q", got)
		}
		if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && len(s) <= limit && got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func TestLongTextsStayDifferent(t *testing.T) {
	a, b := strings.Repeat("x", 5000)+"a", strings.Repeat("x", 5000)+"b"
	if text(a, 1000) == text(b, 1000) {
		t.Error("two long keys are one")
	}
}

func FuzzPayload(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `"\u0000"`, "\xff", `1e400`, `[[[[]]]]`, ``, `"\\u0000 \ud83d\ude00 \ud83d"`, `[-0.0e-5,1E+9]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := payload(body)
		if body == nil || got == nil {
			return
		}
		if !json.Valid([]byte(*got)) || !utf8.ValidString(*got) || strings.ContainsRune(*got, 0) {
			t.Errorf("%q", *got)
		}
	})
}

func TestNumbersAndTimesFit(t *testing.T) {
	if number(math.MaxInt) != math.MaxInt32 || number(-5) != 0 || number(uint64(math.MaxUint64)) != math.MaxInt32 || number(7) != 7 {
		t.Error("numbers")
	}
	if millis(1500*time.Microsecond) != 2 || millis(1499*time.Microsecond) != 1 || millis(math.MaxInt64) != math.MaxInt32 || millis(-1) != 0 {
		t.Error("milliseconds")
	}
	if !moment(time.Time{}).Equal(firstTime) || !moment(time.Unix(1<<60, 0)).Equal(lastTime) || momentOrNull(time.Time{}) != nil {
		t.Error("times")
	}
}

// TestFoldKeepsTheLatest: whatever the order, the highest version's state is left, with the last attempt that came.
func TestFoldKeepsTheLatest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		versions := rapid.SliceOfN(rapid.Uint64Range(1, 50), 1, 12).Draw(t, "versions")
		var rows []Row
		var highest, tried uint64
		for _, v := range versions {
			r := Row{EventID: "a", Version: v, Status: "failed", Attempts: int(v)}
			if v%3 == 0 {
				r.Attempt = &Attempt{Number: int(v)}
				tried = max(tried, v)
			}
			highest = max(highest, v)
			rows = append(rows, r)
		}
		live, deleted := fold(rows, true)
		if len(live) != 1 || len(deleted) != 0 || live[0].Version != highest || live[0].Attempts != int(highest) {
			t.Fatalf("%d live, %d deleted: %+v", len(live), len(deleted), live)
		}
		if last := live[0].last; (last == nil) != (tried == 0) || last != nil && last.Number != int(tried) {
			t.Fatalf("last attempt %+v, want %d", last, tried)
		}
	})
}
