package cli

import (
	"maps"
	"strings"
	"testing"
)

// TestAnEndpointThatThereIsNot: nothing found may mean that all is well, or that the name was mistyped.
func TestAnEndpointThatThereIsNot(t *testing.T) {
	const none = `{"matched":0,"replayed":0,"purged":0,"dry_run":false}`
	all := answers()
	for _, name := range []string{"partnre-a", "partner-a", "nobody", "https:%2F%2Fx.example"} {
		maps.Copy(all, map[string]string{
			"GET /api/v1/events?endpoint=" + name + "&limit=50":       `{"events":[],"next_cursor":null}`,
			"GET /api/v1/dead-letters?endpoint=" + name + "&limit=50": `{"dead_letters":[],"next_cursor":null}`,
		})
	}
	all["POST /api/v1/dead-letters/purge"], all["POST /api/v1/dead-letters/replay"] = none, none
	f := newFake(t, all)
	for _, c := range []struct {
		line string
		acts bool
	}{
		{"events list", false}, {"events list --json", false}, {"dead-letters list", false}, {"dead-letters list --json", false},
		{"dead-letters replay", true}, {"dead-letters replay --dry-run", true}, {"dead-letters replay --json --rate 3", true},
		{"dead-letters purge --yes", true}, {"dead-letters purge --dry-run", true},
	} {
		for name, says := range map[string]string{"partnre-a": `there is no endpoint "partnre-a"; did you mean "partner-a"?`, "nobody": "there is no endpoint \"nobody\"; `postern endpoints` lists", "partner-a": ""} {
			got := f.on(t, c.line+" --endpoint "+name)
			code := 0
			if c.acts && says != "" {
				code = 1
			}
			if got.code != code || (got.stderr != "") != (says != "") || !strings.Contains(got.stderr, says) || (got.stdout == "") != (code == 1) {
				t.Errorf("%s --endpoint %s: code %d\n%s%s", c.line, name, got.code, got.stdout, got.stderr)
			}
		}
		if !c.acts {
			continue
		}
		if got := f.on(t, c.line+" --endpoint https://gone.example"); got.code != 0 || got.stderr != "" || got.stdout == "" {
			t.Errorf("%s for an origin that was forgotten: code %d\n%s%s", c.line, got.code, got.stdout, got.stderr)
		}
	}
}
