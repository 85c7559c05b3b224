package pgstore

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"postern/sync/pgtest"
)

// judge asks the real Postgres whether jsonb takes texts, one by one.
func judge(t *testing.T) func(texts ...string) []bool {
	t.Helper()
	db := pgtest.New(t)
	db.Exec("CREATE SCHEMA " + db.Schema)
	conn, err := pgtest.Dial(t.Context(), db.DSN, db.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	const takes = `CREATE FUNCTION takes(body text) RETURNS boolean LANGUAGE plpgsql AS $$
		BEGIN RETURN length(body::jsonb::text) > 0; EXCEPTION WHEN OTHERS THEN RETURN false; END $$`
	if err := conn.Exec(t.Context(), takes); err != nil {
		t.Fatal(err)
	}
	return func(texts ...string) (verdicts []bool) {
		query := "SELECT takes(v) FROM unnest(ARRAY[$body$" + strings.Join(texts, "$body$, $body$") + "$body$]) WITH ORDINALITY u(v, n) ORDER BY n"
		rows, err := conn.Rows(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			verdicts = append(verdicts, row[0] == "t")
		}
		return verdicts
	}
}

func nested(n int, open, inner, closing string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(closing, n)
}

// TestJSONBTakes: what was once sent as base64 without need, and what must be.
func TestJSONBTakes(t *testing.T) {
	asked := judge(t)
	for _, tc := range []struct {
		name, body string
		want       bool
	}{
		{"a UUID", `{"id":"78e51061-1e400-4e999-8000-78e510610000"}`, true},
		{"a surrogate pair", `{"t":"\ud83d\ude00"}`, true},
		{"in capitals", `{"t":"\uD83D\uDE00"}`, true},
		{"a pair in a key", `{"\ud83d\ude00":1}`, true},
		{"an escaped backslash", `{"t":"\\u0000 \\ud83d"}`, true},
		{"a big number", `{"t":1e100}`, true},
		{"digits in a string", `{"t":"` + strings.Repeat("7", 300) + `"}`, true},
		{"braces in a string", `{"t":"` + strings.Repeat("{[", 1000) + `"}`, true},
		{"a quote and a brace in a string", `{"t":"\"` + strings.Repeat("[", 1000) + `"}`, true},
		{"101 deep", nested(101, "[", "", "]"), true},
		{"500 deep", nested(500, `{"a":`, "1", "}"), true},
		{"many beside each other", "[" + strings.Repeat("[],", 2000) + "[]]", true},
		{"a NUL", `{"t":"a\u0000"}`, false},
		{"a NUL in a key", `{"\u0000":1}`, false},
		{"half a pair", `{"t":"\ud83d"}`, false},
		{"half a pair and more", `{"t":"\ud83d x"}`, false},
		{"half a pair and another escape", `{"t":"\ud83d\n"}`, false},
		{"two first halves", `{"t":"\ud83d\ud83d"}`, false},
		{"the second half", `{"t":"\ude00"}`, false},
		{"the wrong way round", `{"t":"\ude00\ud83d"}`, false},
		{"a half behind a pair", `{"t":"\ud83d\ude00\ude00"}`, false},
		{"the largest power", "1e131071", true},
		{"too large", "1e131072", false},
		{"the smallest power", "-9.5e-16382", true},
		{"too small", "1e-16384", false},
		{"a zero like that", "0e-16384", false},
		{"a zero with an exponent", "0.00e400000", true},
		{"an exponent past all bounds", "0e1073741823", false},
		{"an exponent that no integer holds", "[1e99999999999999999999]", false},
		{"zeros in front", "0." + strings.Repeat("0", 99999) + "1e231071", true},
		{"many digits", "1" + strings.Repeat("0", 131071), true},
		{"too many", "1" + strings.Repeat("0", 131072), false},
		{"many behind the point", "1." + strings.Repeat("0", 16383), true},
		{"too many behind the point", "1." + strings.Repeat("0", 16384), false},
		{"a point that the exponent moves", "1" + strings.Repeat("0", 131072) + "e-1", true},
		{"no JSON", "hello", false},
		{"nothing", "", false},
		{"two values", "{} {}", false},
	} {
		if got := jsonbTakes([]byte(tc.body)); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
		if got := asked(tc.body)[0]; got != tc.want {
			t.Errorf("%s: Postgres says %v, want %v", tc.name, got, tc.want)
		}
	}
	for name, body := range map[string]string{
		"deeper than we know to be safe": nested(501, "[", "", "]"),
		"not to be written out":          "[" + strings.Repeat("1e131071,", 1000) + "1]",
		"no UTF-8":                       "\"\xff\"", "a raw NUL": "\"\x00\"",
	} {
		if jsonbTakes([]byte(body)) {
			t.Errorf("%s is taken", name)
		}
	}
}

var (
	inStrings = rapid.SampledFrom([]string{
		`\u0000`, `\\u0000`, `\\`, `\"`, `\ud83d`, `\uDE00`, `\ud83d\ude00`, `\u00e9`, `\u000a`, `\n`, "{", "[", "]", "é", "😀", "78e51061", "0", "u", "\x7f",
	})
	digits = rapid.Custom(func(t *rapid.T) string {
		n := rapid.SampledFrom([]int{1, 1, 2, 3, 300, 16383, 16384, 131071, 131072}).Draw(t, "digits")
		return rapid.SampledFrom([]string{"0", "7", "90"}).Draw(t, "of")[:1] + strings.Repeat(rapid.SampledFrom([]string{"0", "3"}).Draw(t, "more"), n-1)
	})
	numbers = rapid.Custom(func(t *rapid.T) string {
		s := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
		if whole := digits.Draw(t, "whole"); whole[0] == '0' {
			s += "0"
		} else {
			s += whole
		}
		if rapid.Bool().Draw(t, "fraction") {
			s += "." + digits.Draw(t, "behind the point")
		}
		if rapid.Bool().Draw(t, "power") {
			near := rapid.SampledFrom([]int{0, 9, 16383, -16383, 131071, -131071, 147455, 1<<30 - 1, -(1<<30 - 1)}).Draw(t, "near")
			s += fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"e", "E"}).Draw(t, "e"), near+rapid.IntRange(-3, 3).Draw(t, "by"))
		}
		return s
	})
	texts = rapid.Custom(func(t *rapid.T) string {
		return `"` + strings.Join(rapid.SliceOfN(inStrings, 0, 6).Draw(t, "pieces"), "") + `"`
	})
	documents = rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("{%s: [%s, %s, true], \"n\": %s}", texts.Draw(t, "key"), texts.Draw(t, "text"), numbers.Draw(t, "one"), numbers.Draw(t, "two"))
	})
)

// TestJSONBTakesWhatPostgresTakes: neither more nor less.
func TestJSONBTakesWhatPostgresTakes(t *testing.T) {
	asked := judge(t)
	rapid.Check(t, func(t *rapid.T) {
		bodies := rapid.SliceOfN(rapid.OneOf(documents, numbers, texts), 1, 10).Draw(t, "bodies")
		for i, want := range asked(bodies...) {
			if got := jsonbTakes([]byte(bodies[i])); got != want {
				t.Fatalf("%.200q (%d bytes): %v, Postgres says %v", bodies[i], len(bodies[i]), got, want)
			}
		}
	})
}
