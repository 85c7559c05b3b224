package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// A newcomer types what docs/getting-started.md shows, block by block, beside the receiver of run --hello: what fails there
// becomes a dead letter, and its replay is delivered.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	p := newPostern(t, "")
	p.options = []string{"--dev", "--hello"}
	p.start()
	mend := regexp.MustCompile(`(?m)^  curl (http://\S+)/mend `)
	p.eventually(patience, "the receiver's address", func() bool { return mend.MatchString(p.log.String()) })
	base := mend.FindStringSubmatch(p.log.String())[1]
	d := &desk{t: t, p: p, dir: t.TempDir()}
	d.words = strings.NewReplacer("http://localhost:8089", p.ingest, "http://127.0.0.1:8089", p.ingest, "http://127.0.0.1:39793", base)
	d.program()
	ran := 0
	for _, b := range blocksOf(t, "../../docs/getting-started.md") {
		if b.language != "sh" {
			continue
		}
		if strings.Contains(b.text, "dead-letters list") {
			p.waitState("order-3", "dead_letter", patience)
		}
		d.shell(b)
		ran++
	}
	p.waitState("order-3", "delivered", patience)
	if ran < 6 || !strings.Contains(p.log.String(), "POST /fail?cid=3 (attempt 6), answered 200") {
		t.Errorf("%d blocks, and the receiver says:\n%s", ran, p.log)
	}
}
