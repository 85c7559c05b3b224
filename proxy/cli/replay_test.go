package cli

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
		got := typed{args: strings.Fields("dead-letters replay --rate 100"), env: env}.run(t)
		if got.code != code || got.stdout != "18 of 20 dead letters replayed.\n" || !strings.HasPrefix(got.stderr, "replayed: 7 of 20 (35 %)\nreplayed: 13 of 20 (65 %)\nreplayed: 19 of 20 (95 %)\n") {
			t.Errorf("%s: code %d\n%s%s", state, got.code, got.stdout, got.stderr)
		}
		if state == "failed" && !strings.Contains(got.stderr, "the disk is full") {
			t.Errorf("the reason is missing: %s", got.stderr)
		}
		got = typed{args: strings.Fields("dead-letters replay --rate 100 --detach"), env: env}.run(t)
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
