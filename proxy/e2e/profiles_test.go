package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// Profiles are off until a reload or a flag turns them on, and a reload turns them off again.
func TestProfilesByReloadAndFlag(t *testing.T) {
	t.Parallel()
	p := startPostern(t, calm)
	want := func(status int) {
		t.Helper()
		if got := p.probe("/debug/pprof/heap"); got != status {
			t.Errorf("/debug/pprof/heap: %d, want %d", got, status)
		}
	}
	want(404)
	listeners := fmt.Sprintf("listen: %s\nadmin: { listen: %s", strings.TrimPrefix(p.ingest, "http://"), strings.TrimPrefix(p.admin, "http://"))
	p.writeConfig(listeners + ", pprof: true }\n" + calm)
	p.reload()
	want(200)
	p.configure(calm)
	p.reload()
	want(404)
	p.kill()
	p.options = []string{"--pprof"}
	p.start()
	want(200)
}
