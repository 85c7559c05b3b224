package e2e

import (
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/sync/pgtest"
)

// Whatever a secret is part of and whatever becomes of its event, down to the debug level and in both formats of the log:
// no log line, metric, list, detail, command or row in Postgres shows it. With reveal=1 it shows, and the log tells who
// looked.
func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			secretsStayHidden(t, format)
		})
	}
}

func secretsStayHidden(t *testing.T, format string) {
	var hidden secrets
	ok := newReceiver(t, nil)
	where := partners(t, &hidden)
	db := pgtest.New(t)
	config := secretConfig(&hidden, db, where) + "log: { level: debug, format: " + format + " }\n"
	moving := func(path string) string {
		return fmt.Sprintf("  - { name: moving, url: %q, retry: { max_attempts: 1 } }\n", ok.url(path))
	}
	p := newPostern(t, config+endpointsOf(&hidden, where)+moving("/x"))
	p.secretFile("spool.key", hex.EncodeToString([]byte(hidden.next("SPOOLKEY")[:32])))
	p.start()

	p.api("POST", "endpoints/moving/pause", "", nil)
	ids := []string{p.acceptSecrets(&hidden, "http", ok.addr())}
	for _, name := range []string{"refusing", "redirecting", "hanging", "garbled", "short", "trailing", "closed", "unknown"} {
		if name == "hanging" {
			ids = append(ids, p.acceptSecrets(&hidden, "http", where[name], "Postern-Timeout: 1s"))
		} else {
			ids = append(ids, p.acceptSecrets(&hidden, "http", where[name]))
		}
	}
	ids = append(ids, p.acceptSecrets(&hidden, "https", where["untrusted"]), p.acceptSecrets(&hidden, "https", ok.addr()))
	for _, name := range []string{"named/", "judged/", "metadata/", "other-name/", "moving//\""} {
		ids = append(ids, p.accept("POST", "/to/"+name+hidden.next("SUFFIXPATH")+"?more="+hidden.next("SUFFIX"), hidden.next("BODY"), "X-Secret: "+hidden.next("HEADER")))
	}
	p.refuseSecrets(&hidden, ok)
	// An address that was fine when the event came, and cannot be written any more.
	p.configure(config + endpointsOf(&hidden, where) + moving(""))
	p.reload()
	p.api("POST", "endpoints/moving/resume", "", nil)
	p.settled(patience)
	p.everyClass()

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
		p.eventually(patience, "the log to tell of a reveal", func() bool {
			told := p.log.String()[before:]
			return strings.Contains(told, id) && strings.Contains(told, "revealed") && strings.Contains(told, "127.0.0.1:")
		})
	}
	p.api("POST", "dead-letters/replay", "{}", nil)
	p.settled(patience)
	p.eventually(patience, "all rows to reach Postgres", func() bool {
		return db.Value("SELECT count(*) FROM webhook_queue WHERE status IN ('delivered', 'dead_letter')") == fmt.Sprint(len(ids))
	})
	p.stop(patience)
	rows, places := db.Dump(), p.spoolFiles()
	if !strings.Contains(places["spool.db"], "other-name") {
		t.Error("the names of endpoints are not in spool.db: the spool is elsewhere")
	}
	places["the log"], places["Postgres"] = p.log.String(), rows
	for place, text := range places {
		if found := hidden.in(text); len(found) > 0 {
			t.Errorf("%s shows %v", place, found)
		}
	}
	for _, want := range append(ids, "http://"+where["refusing"]+"/in", "http_500", "checkout") {
		if !strings.Contains(rows, want) {
			t.Errorf("Postgres has no %s", want)
		}
	}
}

// partners are receivers that answer with secrets, each in its own way, and addresses where there is none.
func partners(t *testing.T, hidden *secrets) map[string]string {
	ca := newAuthority(t)
	certificate := ca.issue(time.Now().Add(time.Hour), strings.ToLower(hidden.next("CERTNAME"))+".example", "*."+strings.ToLower(hidden.next("ALTNAME"))+".example")
	conf := &tls.Config{Certificates: []tls.Certificate{certificate}}
	raw := func(text string) *receiver { return newReceiver(t, script(reply{Raw: text})) }
	return map[string]string{
		"refusing":    newReceiver(t, script(reply{Status: 500, Body: hidden.next("ANSWER"), Header: map[string]string{"X-Secret": hidden.next("ANSWERHEADER"), "Set-Cookie": hidden.next("COOKIE"), "Retry-After": hidden.next("AFTER")}})).addr(),
		"redirecting": newReceiver(t, script(reply{Status: 302, Header: map[string]string{"Location": "http://u:" + hidden.next("LOCPW") + "@" + hidden.next("LOCHOST") + ".example/" + hidden.next("LOCPATH") + "?t=" + hidden.next("LOCATION")}})).addr(),
		"judged":      newReceiver(t, script(reply{Status: 200, Body: "no: " + hidden.next("JUDGED")})).addr(),
		"hanging":     newReceiver(t, script(reply{Hang: true})).addr(),
		"garbled":     raw(hidden.next("GARBAGE") + "\r\n\r\n").addr(),
		"short":       raw("HTTP/1.1 500 " + hidden.next("REASON") + "\r\nX-" + hidden.next("NAME") + ": 1\r\nContent-Length: 99\r\n\r\n" + hidden.next("SHORT")).addr(),
		"trailing": raw("HTTP/1.1 500 " + hidden.next("REASON") + "\r\nTransfer-Encoding: chunked\r\nTrailer: X-" + hidden.next("TRAILERNAME") +
			"\r\n\r\n5\r\nhello\r\n0\r\nX-T: " + hidden.next("TRAILER") + "\r\n" + hidden.next("BADTRAILER") + "\r\n\r\n").addr(),
		"untrusted": newReceiverOn(t, "127.0.0.1:0", conf, nil).addr(),
		"closed":    freeAddr(t),
		"unknown":   "no-such-host.invalid",
		"ca":        ca.file,
	}
}

// secretConfig is everything but the endpoints.
func secretConfig(hidden *secrets, db *pgtest.DB, where map[string]string) string {
	if dsn, err := url.Parse(db.DSN); err == nil && dsn.User != nil {
		if password, ok := dsn.User.Password(); ok && len(password) > 7 {
			hidden.words = append(hidden.words, password)
		}
	}
	return fmt.Sprintf(`
query_keys_in_logs: [cid]
targets: { allow_private: true }
defaults: { timeout: 30s, retry: { max_attempts: 2, base_delay: 10ms, max_delay: 20ms } }
sync: { dsn: %q, schema: %s, interval: 100ms, payloads: none, labels: { service: checkout } }
spool: { encryption_key_files: [spool.key] }
`, db.DSN, db.Schema)
}

// endpointsOf are endpoints whose configuration is full of secrets.
func endpointsOf(hidden *secrets, where map[string]string) string {
	_, port, _ := strings.Cut(where["untrusted"], ":")
	return fmt.Sprintf("endpoints:\n"+
		"  - { name: named, url: %q, headers: { set: { X-Api-Key: %s } }, sign: { scheme: stripe, secrets: [%s] } }\n"+
		"  - { name: judged, url: %q, success: { body_rejects: \"^no\" }, sign: { scheme: standard, secrets: [%q] } }\n"+
		"  - { name: metadata, url: %q }\n"+
		"  - { name: other-name, url: %q, tls: { ca_file: %q } }\n",
		"http://cu:"+hidden.next("CONFIGPW")+"@"+where["refusing"]+"/in?key="+hidden.next("CONFIGQUERY"), hidden.next("CONFIGHEADER"), hidden.next("SIGNSECRET"),
		"http://"+where["judged"]+"/?k="+hidden.next("CONFIGQUERY"), whsec([]byte(hidden.next("SIGNKEY"))),
		"http://169.254.169.254/?k="+hidden.next("CONFIGQUERY"),
		"https://localhost:"+port+"/?k="+hidden.next("CONFIGQUERY"), where["ca"])
}

// everyClass looks whether every class of failure is among the dead letters.
func (p *postern) everyClass() {
	p.t.Helper()
	var letters struct {
		DeadLetters []struct {
			LastError string `json:"last_error"`
		} `json:"dead_letters"`
	}
	p.api("GET", "dead-letters?limit=1000", "", &letters)
	var seen []string
	for _, letter := range letters.DeadLetters {
		seen = append(seen, letter.LastError)
	}
	for _, class := range []string{"dns", "connect", "tls", "timeout", "connection", "http_500", "redirect", "body_rule", "blocked_address", "invalid_request"} {
		if !slices.Contains(seen, class) {
			p.t.Errorf("no event failed as %s, only as %v", class, seen)
		}
	}
}

// acceptSecrets sends an event that has a secret wherever one can be.
func (p *postern) acceptSecrets(hidden *secrets, scheme, host string, more ...string) string {
	p.t.Helper()
	url := fmt.Sprintf("%s://u:%s@%s/%s?cid=VISIBLE&token=%s", scheme, hidden.next("PW"), host, hidden.next("PATH"), hidden.next("QUERY"))
	more = append(more, "X-Secret: "+hidden.next("HEADER"), "Cookie: c="+hidden.next("APPCOOKIE"), "Idempotency-Key: "+hidden.next("KEY"))
	return p.accept("POST", "/"+url, hidden.next("BODY"), more...)
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
