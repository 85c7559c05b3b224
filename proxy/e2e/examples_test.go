package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// examples is what users copy.
const examples = "../../examples"

// program finds an interpreter that an example needs. Without it the test is skipped on a developer's machine, and
// fails where CI is set: .ci/examples installs them.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is needed to run an example; .ci/examples installs it", name)
	}
	t.Skipf("%s is not on this machine", name)
	return ""
}

// clients are the examples of how an application changes: how to run it before and after, and how many lines differ,
// beside the sentence at the top that says what it does.
var clients = []struct {
	name, program string
	before, after []string
	change        int
}{
	{"curl", "curl", []string{"sh", "curl/before.sh"}, []string{"sh", "curl/after.sh"}, 3},
	{"go", "go", []string{"go", "run", "./go/before"}, []string{"go", "run", "./go/after"}, 3},
	{"python", "python3", []string{"python3", "python/before.py"}, []string{"python3", "python/after.py"}, 3},
	{"node", "node", []string{"node", "node/before.mjs"}, []string{"node", "node/after.mjs"}, 3},
	{"php", "php", []string{"php", "php/before.php"}, []string{"php", "php/after.php"}, 3},
	{"ruby", "ruby", []string{"ruby", "ruby/before.rb"}, []string{"ruby", "ruby/after.rb"}, 3},
	{"java", "java", []string{"java", "java/Before.java"}, []string{"java", "java/After.java"}, 4}, // its class has another name, too
}

// Each client posts the same bytes before and after, a repetition after is one event, and a partner that is away
// matters only before.
func TestClientExamples(t *testing.T) {
	t.Parallel()
	p := startPostern(t, calm)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			program(t, c.program)
			if n := changedLines(t, c.before[len(c.before)-1], c.after[len(c.after)-1]); n != c.change+1 {
				t.Errorf("%d lines differ, want %d and the sentence at the top", n, c.change)
			}
			partner := newReceiver(t, nil)
			runClient(t, p, partner, c.before, true)
			for range 2 {
				runClient(t, p, partner, c.after, true)
			}
			partner.wait(2, patience)
			p.settled(patience)
			got := partner.requests()
			if len(got) != 2 {
				t.Fatalf("the partner got %d requests, want one before and one after: %v", len(got), partner.byEvent())
			}
			samePostback(t, got[0], got[1])
			partner.close()
			runClient(t, p, partner, c.before, false)
			runClient(t, p, partner, c.after, true)
		})
	}
}

// runClient runs a client against this partner, and checks whether it ends well.
func runClient(t *testing.T, p *postern, partner *receiver, command []string, well bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = filepath.Join(examples, "clients")
	cmd.Env = append(os.Environ(), "PARTNER="+partner.url("/postback"), "POSTERN="+p.ingest+"/")
	if out, err := cmd.CombinedOutput(); (err == nil) != well {
		t.Fatalf("%q: %v, want it to end well: %v\n%s", command, err, well, out)
	}
}

// samePostback compares what the application decides about: a client's own headers may differ with the target.
func samePostback(t *testing.T, before, after request) {
	t.Helper()
	if before.Line != "POST /postback?cid=a+b%20c HTTP/1.1" && !strings.HasSuffix(before.Line, "HTTP/1.0") {
		t.Errorf("before: %q", before.Line)
	}
	if b, a := strings.Fields(before.Line)[1], strings.Fields(after.Line)[1]; b != a {
		t.Errorf("%q became %q", b, a)
	}
	if !bytes.Equal(before.Body, after.Body) || !bytes.HasPrefix(after.Body, []byte(`{"order":`)) {
		t.Errorf("%q became %q", before.Body, after.Body)
	}
	for name := range before.Header {
		if name != "Connection" && before.Header.Get(name) != after.Header.Get(name) {
			t.Errorf("%s: %q became %q", name, before.Header[name], after.Header[name])
		}
	}
	if after.eventID() == "" || after.Header.Get("Idempotency-Key") != "order-42" {
		t.Errorf("after: %v", after.Header)
	}
}

// changedLines counts the lines of after that before does not have. A folder stands for its main.go.
func changedLines(t *testing.T, before, after string) int {
	t.Helper()
	read := func(name string) []string {
		path := filepath.Join(examples, "clients", name)
		if filepath.Ext(path) == "" {
			path = filepath.Join(path, "main.go")
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(text), "\n")
	}
	had := map[string]int{}
	for _, line := range read(before) {
		had[line]++
	}
	n := 0
	for _, line := range read(after) {
		if had[line]--; had[line] < 0 {
			n++
		}
	}
	return n
}

// The outbox keeps what Postern does not take, and what is handed over again after a crash is the same event.
func TestOutboxExample(t *testing.T) {
	t.Parallel()
	python := program(t, "python3")
	partner := newReceiver(t, nil)
	p := newPostern(t, calm)
	database := filepath.Join(t.TempDir(), "shop.db")
	run := func(well bool, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Dir = filepath.Join(examples, "outbox")
		cmd.Env = append(os.Environ(), "OUTBOX="+database, "POSTERN="+p.ingest+"/", "PYTHONDONTWRITEBYTECODE=1")
		if out, err := cmd.CombinedOutput(); (err == nil) != well {
			t.Fatalf("%q: %v, want it to end well: %v\n%s", args, err, well, out)
		}
	}
	insert := "import os, relay, sqlite3; db = sqlite3.connect(os.environ['OUTBOX']); db.execute(relay.SCHEMA); " +
		"db.executemany('INSERT INTO outbox (id, method, url, body, content_type) VALUES (?, ?, ?, ?, ?)', [(i, 'PUT', '" + partner.url("/pb") + "', b'{}', 'application/json') for i in (1, 2)]); db.commit()"
	run(true, "-c", insert)
	run(false, "relay.py") // Postern is not there: nothing is lost
	p.start()
	run(true, "relay.py")
	partner.wait(2, patience)
	run(true, "-c", insert) // as if it had crashed before the DELETE
	run(true, "relay.py")
	p.settled(patience)
	for id, n := range partner.byEvent() {
		if n != 1 || !strings.HasPrefix(id, "outbox-") {
			t.Errorf("%s came %d times", id, n)
		}
	}
	if q := partner.requests()[0]; len(partner.requests()) != 2 || q.Line != "PUT /pb HTTP/1.1" || string(q.Body) != "{}" {
		t.Errorf("%d requests, the first %q with %q", len(partner.requests()), q.Line, q.Body)
	}
}
