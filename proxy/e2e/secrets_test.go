package e2e

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"postern/sync/pgtest"
)

// secrets makes words that occur nowhere by chance, and remembers them.
type secrets struct{ words []string }

func (s *secrets) next(kind string) string {
	word := kind + rand.Text()
	s.words = append(s.words, word)
	return word
}

// in tells which of them a text shows.
func (s *secrets) in(text string) (found []string) {
	for _, word := range s.words {
		if strings.Contains(text, word) {
			found = append(found, word)
		}
	}
	return found
}

// Whatever a secret is part of and whatever becomes of its event: no log line, metric, list or detail shows it, down to
// the debug level, and none reaches Postgres. With reveal=1 it shows, and the log tells that somebody looked.
func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	var hidden secrets
	ok := newReceiver(t, nil)
	failing := newReceiver(t, script(reply{Status: 500, Body: hidden.next("ANSWER"), Header: map[string]string{"X-Secret": hidden.next("ANSWERHEADER"), "Set-Cookie": hidden.next("COOKIE")}}))
	redirecting := newReceiver(t, script(reply{Status: 302, Header: map[string]string{"Location": "http://u:" + hidden.next("LOCPW") + "@127.0.0.1:1/?t=" + hidden.next("LOCATION")}}))
	hanging := newReceiver(t, script(reply{Hang: true}))
	garbled := newReceiver(t, script(reply{Raw: hidden.next("GARBAGE") + "\r\n\r\n"}))
	short := newReceiver(t, script(reply{Raw: "HTTP/1.1 500 " + hidden.next("REASON") + "\r\nX-" + hidden.next("NAME") + ": 1\r\nContent-Length: 99\r\n\r\n" + hidden.next("SHORT")}))
	ca := newAuthority(t)
	selfSigned := newReceiverOn(t, "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{ca.issue(time.Now().Add(time.Hour), "x.example")}}, nil)
	db := pgtest.New(t)
	p := startPostern(t, fmt.Sprintf(`
log: { level: debug }
sync: { dsn: %q, schema: %s, interval: 200ms, labels: { service: checkout } }
query_keys_in_logs: [cid]
targets: { allow_private: true }
defaults: { timeout: 500ms, retry: { max_attempts: 2, base_delay: 10ms, max_delay: 20ms } }
endpoints:
  - { name: named, url: %q, headers: { set: { X-Api-Key: %s } } }
`, db.DSN, db.Schema, failing.url("/in?key="+hidden.next("CONFIGQUERY")), hidden.next("CONFIGHEADER")))

	var ids []string
	for _, base := range []string{
		ok.addr(), failing.addr(), redirecting.addr(), hanging.addr(), garbled.addr(), short.addr(), freeAddr(t), "no-such-host.invalid",
	} {
		ids = append(ids, p.acceptSecrets(&hidden, "http", base))
	}
	ids = append(ids, p.acceptSecrets(&hidden, "https", selfSigned.addr()), p.acceptSecrets(&hidden, "https", ok.addr()))
	ids = append(ids, p.accept("POST", "/to/named/x?more="+hidden.next("SUFFIX"), hidden.next("BODY"), "X-Secret: "+hidden.next("HEADER")))
	p.refuseSecrets(&hidden, ok)
	p.settled(20 * time.Second)

	p.showNothing(&hidden, ids)
	if shown := p.log.String(); !strings.Contains(shown, "cid=VISIBLE") {
		t.Error("query_keys_in_logs lets cid through, and the log does not show it")
	}
	for _, id := range ids[1:] {
		before := len(p.log.String())
		whole := p.get("/api/v1/events/" + id + "?reveal=1")
		if len(hidden.in(whole)) < 3 {
			t.Errorf("reveal=1 shows %v only: %s", hidden.in(whole), whole)
		}
		p.eventually(2*time.Second, "the log to tell of a reveal", func() bool { return strings.Contains(p.log.String()[before:], id) })
	}
	p.api("POST", "dead-letters/replay", "{}", nil)
	p.settled(20 * time.Second)
	p.stop(10 * time.Second)
	if found := hidden.in(p.log.String()); len(found) > 0 {
		t.Errorf("the log shows %v", found)
	}
	dump := db.Dump()
	if found := hidden.in(dump); len(found) > 0 {
		t.Errorf("Postgres has %v", found)
	}
	for _, want := range append(ids, failing.url("/in"), "http_500", "checkout") {
		if !strings.Contains(dump, want) {
			t.Errorf("Postgres has no %s", want)
		}
	}
}

// acceptSecrets sends an event that has a secret wherever one can be.
func (p *postern) acceptSecrets(hidden *secrets, scheme, host string) string {
	p.t.Helper()
	url := fmt.Sprintf("%s://u:%s@%s/%s?cid=VISIBLE&token=%s", scheme, hidden.next("PW"), host, hidden.next("PATH"), hidden.next("QUERY"))
	return p.accept("POST", "/"+url, hidden.next("BODY"), "X-Secret: "+hidden.next("HEADER"), "Cookie: c="+hidden.next("APPCOOKIE"),
		"Idempotency-Key: "+hidden.next("KEY"))
}

// refuseSecrets sends what is refused, each time with a secret in it.
func (p *postern) refuseSecrets(hidden *secrets, r *receiver) {
	p.t.Helper()
	for _, c := range []struct{ path, header string }{
		{"/http://u:" + hidden.next("PW") + "@[::1/x", ""},
		{"/http://u:" + hidden.next("PW") + "@host:99999/x", ""},
		{"/ftp://u:" + hidden.next("PW") + "@host/" + hidden.next("PATH"), ""},
		{"/http://169.254.169.254/" + hidden.next("PATH") + "?t=" + hidden.next("QUERY"), ""},
		{"/" + hidden.next("WORD"), ""},
		{"/to/" + hidden.next("NAMEDPW") + ":pw@x/y", ""},
		{"/", "Postern-Url: http://h/ " + hidden.next("BLANK")},
		{"/" + r.url("/x"), "Postern-Delay: " + hidden.next("DELAY")},
		{"/" + r.url("/x"), "Postern-Event-Id: a b " + hidden.next("ID")},
		{"/" + r.url("/x"), "Postern-Timeout: " + hidden.next("TIMEOUT")},
		{"/" + r.url("/x"), "Origin: http://" + hidden.next("ORIGIN")},
	} {
		headers := []string{"Authorization: Bearer " + hidden.next("BEARER")}
		if c.header != "" {
			headers = append(headers, c.header)
		}
		a := p.send("POST", c.path, hidden.next("BODY"), headers...)
		if a.Status < 400 || len(hidden.in(string(a.Body))) > 0 {
			p.t.Errorf("%s: status %d: %s", c.path, a.Status, a.Body)
		}
	}
}

// showNothing looks everywhere but behind reveal=1.
func (p *postern) showNothing(hidden *secrets, ids []string) {
	p.t.Helper()
	places := []string{
		"/metrics", "/", "/healthz", "/readyz", "/api/v1/status", "/api/v1/events?limit=1000", "/api/v1/endpoints", "/api/v1/endpoints/named",
		"/api/v1/dead-letters", "/api/v1/dead-letters/analysis", "/api/v1/dead-letters/replays", "/api/v1/events?cursor=x", "/api/v1/events/none",
	}
	for _, id := range ids {
		places = append(places, "/api/v1/events/"+id)
	}
	for _, place := range places {
		if found := hidden.in(p.get(place)); len(found) > 0 {
			p.t.Errorf("%s shows %v", place, found)
		}
	}
	if found := hidden.in(p.log.String()); len(found) > 0 {
		p.t.Errorf("the log shows %v", found)
	}
	for _, args := range [][]string{{"events"}, {"endpoints"}, {"status"}, {"dead-letters"}, {"dead-letters", "analyze"}, {"events", "show", ids[1]}, {"config", "show", "--config", "postern.yaml"}} {
		stdout, stderr, code := p.run(args...)
		if found := hidden.in(stdout + stderr); len(found) > 0 || code != 0 {
			p.t.Errorf("postern %v: exit code %d, shows %v", args, code, found)
		}
	}
}
