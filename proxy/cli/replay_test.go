package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"postern/proxy/cli/term"
	"postern/proxy/client"
)

func TestPacedReplayShowsProgress(t *testing.T) {
	for state, code := range map[string]int{"done": 0, "failed": 1, "stopped": 1} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				w.WriteHeader(http.StatusAccepted)
				fmt.Fprint(w, `{"matched":20,"replayed":0,"dry_run":false,"started":true,"id":"rpl_1"}`)
				return
			}
			asked++
			now, why := "running", "null"
			if asked == 3 {
				now = state
			}
			if now == "failed" {
				why = `"the disk is full"`
			}
			fmt.Fprintf(w, `{"id":"rpl_1","state":%q,"matched":20,"replayed":%d,"skipped":1,"error":%s}`, now, asked*6, why)
		}))
		env := map[string]string{"POSTERN_ADMIN": server.URL}
		got := typed{args: strings.Fields("dead-letters replay --all --rate 100"), env: env}.run(t)
		if got.code != code || got.stdout != "18 of 20 dead letters replayed.\n" || !strings.HasPrefix(got.stderr, "replayed: 7 of 20 (35 %)\nreplayed: 13 of 20 (65 %)\nreplayed: 19 of 20 (95 %)\n") {
			t.Errorf("%s: code %d\n%s%s", state, got.code, got.stdout, got.stderr)
		}
		if state == "failed" && !strings.Contains(got.stderr, "the disk is full") {
			t.Errorf("the reason is missing: %s", got.stderr)
		}
		got = typed{args: strings.Fields("dead-letters replay --all --rate 100 --detach"), env: env}.run(t)
		if got.code != 0 || got.stdout != "rpl_1: started for 20 dead letters.\n" || asked != 3 {
			t.Errorf("detached: code %d, asked %d times\n%s%s", got.code, asked, got.stdout, got.stderr)
		}
		server.Close()
	}
}

func TestYes(t *testing.T) {
	for in, want := range map[string]bool{"y\n": true, "YES\n": true, " yes \r\n": true, "\n": false, "": false, "n\n": false, "yep\n": false, "y": true} {
		if got := yes(bufio.NewReader(strings.NewReader(in))); got != want {
			t.Errorf("yes(%q) = %v", in, got)
		}
	}
}

// TestPurgeDropsWhatWasCounted: what dies while the person thinks was not asked about.
func TestPurgeDropsWhatWasCounted(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		filter       client.LetterFilter
		want         string
	}{
		{"everything", `{"matched":3,"purged":0,"dry_run":true,"until":"2026-03-04T12:00:01.5Z"}`, client.LetterFilter{}, `{"until":"2026-03-04T12:00:01.5Z"}`},
		{"a span back", `{"matched":3,"purged":0,"dry_run":true,"since":"2026-03-03T12:00:00Z","until":"2026-03-04T11:00:00Z"}`,
			client.LetterFilter{Endpoint: "a", Since: "24h", Until: "1h"}, `{"endpoint":"a","since":"2026-03-03T12:00:00Z","until":"2026-03-04T11:00:00Z"}`},
		{"a Postern that does not say", `{"matched":3,"purged":0,"dry_run":true}`, client.LetterFilter{Status: 503}, `{"status":503,"until":"2026-03-04T12:00:00Z"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, map[string]string{"POST /api/v1/dead-letters/purge": c.answer})
			admin, err := client.NewAdmin(client.Config{Address: f.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer admin.Close()
			var asked strings.Builder
			s := &session{Process: Process{Stdin: strings.NewReader("y\n"), now: func() time.Time { return noon }}, err: &term.Writer{Writer: &asked}}
			got, err := s.askToPurge(admin, client.Bulk{LetterFilter: c.filter})
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := json.Marshal(got); string(text) != c.want || asked.String() != "Drop 3 dead letters for good? [y/N] " {
				t.Errorf("%s, then purging %s, want %s", asked.String(), text, c.want)
			}
		})
	}
}
