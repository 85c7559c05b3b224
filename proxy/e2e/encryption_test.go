package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keyFile puts the key of a spool beside the configuration.
func (p *postern) keyFile(name, seed string) {
	p.t.Helper()
	p.secretFile(name, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(seed, 32)[:32])))
}

// onDisk tells which of some words can be read in the files of the spool.
func (p *postern) onDisk(words ...string) (found []string) {
	p.t.Helper()
	for name, text := range p.spoolFiles() {
		for _, word := range words {
			if strings.Contains(text, word) {
				found = append(found, name+": "+word)
			}
		}
	}
	return found
}

// spoolFiles are the files of the data directory, by name.
func (p *postern) spoolFiles() map[string]string {
	p.t.Helper()
	names, err := filepath.Glob(filepath.Join(p.dataDir(), "*"))
	if err != nil || len(names) == 0 {
		p.t.Fatal(names, err)
	}
	files := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			p.t.Fatal(err)
		}
		files[filepath.Base(name)] = string(data)
	}
	return files
}

// A spool that was plain is given a key by a reload, loses nothing, is killed, and has its key changed; what it holds is
// delivered byte for byte, and none of it can be read on the disk.
func TestSpoolIsEncrypted(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(int, request) reply {
		return reply{Status: 503, Body: "answer-MARK", Header: map[string]string{"Retry-After": "3600"}}
	})
	endpoint := "defaults: { retry: { max_retry_after: 1h } }\nendpoints: [{ name: a, url: \"" + r.url("/hook") + "\" }]\n"
	p := startPostern(t, endpoint)
	words := []string{"query-MARK", "header-MARK", "body-MARK", "answer-MARK", "path-MARK"}
	id := p.accept("POST", "/to/a/path-MARK?q=query-MARK", "body-MARK\r\n", "X-Secret: header-MARK")
	p.waitState(id, "failed", patience)
	if found := p.onDisk(words...); len(found) != len(words) {
		t.Errorf("without a key only this is on disk: %q", found)
	}

	p.keyFile("1.key", "first")
	p.configure("spool: { encryption_key_files: [1.key] }\n" + endpoint)
	p.reload()
	p.typed(0, "spool rekey --config postern.yaml --data data", "the running Postern has every record under the key")
	p.eventually(patience, "the copy that leaves nothing readable", func() bool { return len(p.onDisk(words...)) == 0 })
	p.kill()
	p.start()

	p.keyFile("2.key", "second")
	p.configure("spool: { encryption_key_files: [2.key] }\n" + endpoint)
	p.reload() // the old key is missing: refused, and the running one stays in force
	if log := p.log.String(); !strings.Contains(log, "a key is missing: records in") {
		t.Errorf("a reload that takes a needed key away is not refused:\n%s", log)
	}
	p.configure("spool: { encryption_key_files: [2.key, 1.key] }\n" + endpoint)
	p.reload()
	p.typed(0, "spool rekey --config postern.yaml --data data", "the running Postern has every record under the key")
	p.configure("spool: { encryption_key_files: [2.key] }\n" + endpoint)
	p.stop(patience)
	p.start()

	if e := p.reveal(id); e.Body != "body-MARK\r\n" || !strings.Contains(e.Answer.Body, "answer-MARK") {
		t.Errorf("revealed: %+v", e)
	}
	r.setAnswer(nil)
	p.api("POST", "events/"+id+"/retry", "", nil)
	p.waitState(id, "delivered", patience)
	q := r.requests()[len(r.requests())-1]
	if string(q.Body) != "body-MARK\r\n" || !slices.Equal(q.Header["X-Secret"], []string{"header-MARK"}) || !strings.HasPrefix(q.Line, "POST /hook/path-MARK?q=query-MARK ") {
		t.Errorf("delivered: %s %q %q", q.Line, q.Header, q.Body)
	}
	p.stop(patience)
	if found := p.onDisk(words...); len(found) > 0 {
		t.Errorf("on disk: %q", found)
	}
	p.typed(0, "spool check --config postern.yaml --data data", "whole")

	// A start without the key says which, and what to do.
	p.configure(endpoint)
	p.launch()
	if code := p.waitExit(patience); code != 1 || !strings.Contains(p.log.String(), "add its file to spool.encryption_key_files") {
		t.Errorf("a start without the key: exit code %d\n%s", code, p.log)
	}
}

// A small spool without room for the copy that a first key owes says so, and makes it when events have gone.
func TestCopyOfTheSpoolIsOwed(t *testing.T) {
	t.Parallel()
	settings := "targets: { allow_private: true }\nspool: { max_bytes: 4MiB, max_event_bytes: 256KiB, max_endpoint_share: 1, encryption_key_files: [%] }\n"
	p := startPostern(t, strings.Replace(settings, "%", "", 1))
	var ids []string
	for range 45 {
		ids = append(ids, p.accept("POST", "/http://127.0.0.1:1/x", "body-MARK"+strings.Repeat("x", 50_000), "Postern-Delay: 1h"))
	}
	p.keyFile("1.key", "first")
	p.configure(strings.Replace(settings, "%", "1.key", 1))
	p.reload()
	p.typed(0, "spool rekey --config postern.yaml --data data", "Older keys are not needed any more", "not copied yet", "stop Postern and run this command again")
	var keys struct {
		Rewriting bool `json:"rewriting"`
		CopyOwed  bool `json:"copy_owed"`
	}
	if p.api("GET", "spool/keys", "", &keys); keys.Rewriting || !keys.CopyOwed || len(p.onDisk("body-MARK")) == 0 {
		t.Errorf("GET spool/keys: %+v", keys)
	}
	for _, id := range ids[5:] {
		p.api("DELETE", "events/"+id, "", nil)
	}
	p.typed(0, "spool rekey --config postern.yaml --data data --json", `"copy_owed": false`)
	if found := p.onDisk("body-MARK"); len(found) > 0 {
		t.Errorf("on disk: %q", found)
	}
	if n := strings.Count(p.log.String(), "may still hold what was there before"); n != 1 {
		t.Errorf("the log says %d times that a copy is owed", n)
	}
}
