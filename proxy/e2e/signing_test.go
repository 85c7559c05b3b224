package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	stripewebhook "github.com/stripe/stripe-go/v82/webhook"

	"postern/proxy/signing"
)

// The secrets of these tests, as the scheme standard has them. They look like nothing else that could be in a file.
var (
	oldKey = []byte("OLD-secret-of-the-signing-tests")
	newKey = []byte("NEW-secret-of-the-signing-tests")
)

func whsec(key []byte) string { return "whsec_" + base64.StdEncoding.EncodeToString(key) }

// secretFile puts a secret beside the configuration.
func (p *postern) secretFile(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text+"\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// signedWith tells which of the keys the official library finds in a request's signatures.
func signedWith(t *testing.T, q request, keys ...[]byte) []string {
	t.Helper()
	var found []string
	for _, key := range keys {
		official, err := standardwebhooks.NewWebhookRaw(key)
		if err != nil {
			t.Fatal(err)
		}
		if official.Verify(q.Body, q.Header) == nil {
			found = append(found, string(key[:3]))
		}
	}
	return found
}

// checkFresh holds one attempt against what every attempt promises: the event's ID, a timestamp of its own moment, a
// signature that a receiver with a tolerance of 5 s accepts when it arrives, and each of these headers once.
func checkFresh(t *testing.T, q request, id string, keys ...[]byte) {
	t.Helper()
	attempt := q.Header.Get("Postern-Attempt")
	v := signing.Verifier{Scheme: signing.Standard, Secrets: keys, Tolerance: 5 * time.Second, Now: func() time.Time { return q.At }}
	if err := v.Verify(q.Header, q.Body); err != nil {
		t.Errorf("attempt %s: %v", attempt, err)
	}
	for _, key := range keys {
		if len(signedWith(t, q, key)) == 0 {
			t.Errorf("attempt %s: the official library does not find the signature of %.3s", attempt, key)
		}
	}
	if got := q.Header.Get("Webhook-Id"); got != id || q.eventID() != id {
		t.Errorf("attempt %s has the ID %s and %s, want %s", attempt, got, q.eventID(), id)
	}
	if q.Header.Get("Webhook-Timestamp") != q.Header.Get("X-Delivery-Timestamp") {
		t.Errorf("attempt %s has two times", attempt)
	}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature", "x-delivery-timestamp", "postern-event-id", "postern-attempt"} {
		if n := strings.Count(strings.ToLower(string(q.Raw)), "\r\n"+name+":"); n != 1 {
			t.Errorf("attempt %s has the header %s %d times", attempt, name, n)
		}
	}
}

// Stale timestamps (opencouncil 389): a receiver that tolerates 5 s fails twice, the wait between is longer than that,
// and the process is killed meanwhile.
func TestEveryAttemptIsSignedAnew(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(reply{Status: 503, Header: map[string]string{"Retry-After": "6"}}, status(500), status(200)))
	p := newPostern(t, "defaults: { retry: { base_delay: 200ms } }\nendpoints:\n  - { name: a, url: \""+r.url("/hook")+"\", sign: { scheme: standard, secrets: [\"file:secret\"] } }\n")
	p.secretFile("secret", whsec(oldKey))
	p.start()
	const body = "{\"amount\": 1.50,\t\"name\":\"\\u0026\"}\r\n"
	// What the application says of a signature is not ours, and does not reach the receiver beside ours.
	id := p.accept("POST", "/to/a", body, "webhook-id: forged", "webhook-signature: v1,forged", "Webhook-Timestamp: 1")
	p.departed(r.wait(1, patience)[0])
	p.kill()
	p.start()
	all := r.wait(3, patience)
	p.waitState(id, "delivered", patience)
	for i, q := range all {
		checkFresh(t, q, id, oldKey)
		if string(q.Body) != body || q.Header.Get("Postern-Attempt") != strconv.Itoa(i+1) {
			t.Errorf("attempt %s has the body %q", q.Header.Get("Postern-Attempt"), q.Body)
		}
	}
	first, _ := p.departed(all[0])
	if second, _ := p.departed(all[1]); second.Sub(first) < 6*time.Second-time.Millisecond {
		t.Errorf("the second attempt left after %v: a stale signature would have passed too", second.Sub(first))
	}
	if all[0].Header.Get("Webhook-Signature") == all[2].Header.Get("Webhook-Signature") {
		t.Error("the third attempt carries the first one's signature")
	}
}

// Rotation (adnanh/webhook 355): one event, tried under [old], [new, old] and [new], each put in force by SIGHUP. A file
// that changed under the same configuration counts, one that cannot be used changes nothing, and the secrets are
// nowhere on disk or in the log.
func TestSecretsRotateBetweenAttempts(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, script(later))
	config := func(secrets string) string {
		return "defaults: { retry: { max_attempts: 100 } }\nendpoints:\n  - { name: a, url: \"" + r.url("/hook") +
			"\", sign: { scheme: standard, secrets: [" + secrets + "] }, breaker: { failure_threshold: 100 } }\n"
	}
	p := newPostern(t, config(`"${SECRET}"`))
	p.env = []string{"SECRET=" + whsec(oldKey)}
	p.start()
	id := p.accept("POST", "/to/a", "the body that is on disk")
	attempt := func(n int) request {
		t.Helper()
		q := r.wait(n, patience)[n-1]
		p.eventually(patience, fmt.Sprintf("attempt %d to be recorded", n), func() bool {
			var e event
			p.api("GET", "events/"+id, "", &e)
			return len(e.Attempts) == n && e.State == "failed"
		})
		return q
	}
	checkFresh(t, attempt(1), id, oldKey)

	p.secretFile("fresh", whsec(newKey))
	for i, step := range []struct {
		name   string
		change func()
		want   string
		told   string
	}{
		{"both sign", func() { p.configure(config(`"file:fresh", "${SECRET}"`)) }, "NEW OLD", "configuration reloaded"},
		{"the file changed", func() { p.secretFile("fresh", whsec(oldKey)) }, "OLD", "configuration reloaded"},
		{"and back", func() { p.secretFile("fresh", whsec(newKey)) }, "NEW OLD", "configuration reloaded"},
		{"a file that cannot be used", func() { p.secretFile("fresh", "whsec_!") }, "NEW OLD", "the running configuration stays in force"},
		{"the new one alone", func() { p.secretFile("fresh", whsec(newKey)); p.configure(config(`"file:fresh"`)) }, "NEW", "configuration reloaded"},
	} {
		step.change()
		before := strings.Count(p.log.String(), step.told)
		p.reload()
		if strings.Count(p.log.String(), step.told) == before {
			t.Errorf("%s: the log does not tell %q", step.name, step.told)
		}
		if code := p.api("POST", "events/"+id+"/retry", "", nil); code >= 300 {
			t.Fatalf("%s: retry answers %d", step.name, code)
		}
		q := attempt(i + 2)
		if got := strings.Join(signedWith(t, q, newKey, oldKey), " "); got != step.want {
			t.Errorf("%s: signed with %q, want %q", step.name, got, step.want)
		}
		if n := strings.Count(q.Header.Get("Webhook-Signature"), "v1,"); step.want == "NEW" && n != 1 {
			t.Errorf("%s: %d signatures", step.name, n)
		}
		if q.Header.Get("Webhook-Id") != id {
			t.Errorf("%s: the ID is %s", step.name, q.Header.Get("Webhook-Id"))
		}
	}
	p.kill()
	checkNowhere(t, p, "the body that is on disk")
}

// checkNowhere looks for the secrets, in every spelling, in the files of the spool and in the log. present is in the
// spool, to show that the search finds something.
func checkNowhere(t *testing.T, p *postern, present string) {
	t.Helper()
	found := false
	places := map[string][]byte{"the log": []byte(p.log.String())}
	err := filepath.WalkDir(p.dataDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		places[path] = data
		found = found || bytes.Contains(data, []byte(present))
		return err
	})
	if err != nil || !found {
		t.Errorf("the spool's files were not searched: %v", err)
	}
	for _, key := range [][]byte{oldKey, newKey} {
		for _, text := range []string{string(key), whsec(key), strings.TrimPrefix(whsec(key), "whsec_")} {
			for place, data := range places {
				if bytes.Contains(data, []byte(text)) {
					t.Errorf("the secret %.3s is in %s", key, place)
				}
			}
		}
	}
}

// Each scheme as it leaves, held against the libraries that its users have, and against postern verify.
func TestSchemesOnTheWire(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	endpoints := map[string]string{
		"plain":    "",
		"standard": ", sign: { scheme: standard, secrets: [\"file:base64\", \"" + whsec(newKey) + "\"] }",
		"stripe":   ", sign: { scheme: stripe, secrets: [\"file:text\"] }",
		"own":      ", sign: { scheme: stripe, header: X-Partner-Sign, secrets: [\"file:text\"] }",
		"hub":      ", sign: { scheme: hub, secrets: [\"file:text\"] }",
		"template": ", sign: { scheme: template, header: X-Legacy, template: \"{timestamp}:{base64({id}.{timestamp}.{body})}\", secrets: [\"file:text\"] }",
	}
	config := "endpoints:\n"
	for name, sign := range endpoints {
		config += "  - { name: " + name + ", url: \"" + r.url("/"+name) + "\"" + sign + " }\n"
	}
	p := newPostern(t, config)
	p.secretFile("text", string(oldKey))
	p.secretFile("base64", base64.StdEncoding.EncodeToString(oldKey)) // without the prefix
	p.start()

	official, _ := standardwebhooks.NewWebhookRaw(oldKey)
	checks := map[string]func(q request) error{
		"plain": func(q request) error {
			for name := range maps.Keys(q.Header) {
				if strings.Contains(name, "Sign") || strings.Contains(name, "Webhook") {
					return fmt.Errorf("an unsigned request has %s", name)
				}
			}
			return nil
		},
		"standard": func(q request) error { return official.Verify(q.Body, q.Header) },
		"stripe": func(q request) error {
			return stripewebhook.ValidatePayload(q.Body, q.Header.Get("Stripe-Signature"), string(oldKey))
		},
		"own": func(q request) error {
			return stripewebhook.ValidatePayload(q.Body, q.Header.Get("X-Partner-Sign"), string(oldKey))
		},
	}
	arguments := map[string][]string{
		"standard": {"--scheme", "standard", "--secret-file", "base64"},
		"stripe":   {"--scheme", "stripe", "--secret-file", "text"},
		"own":      {"--scheme", "stripe", "--secret-file", "text", "--sign-header", "X-Partner-Sign"},
		"hub":      {"--scheme", "hub", "--secret-file", "text"},
		"template": {"--scheme", "template", "--secret-file", "text", "--sign-header", "X-Legacy", "--sign-template", "{timestamp}:{base64({id}.{timestamp}.{body})}"},
	}
	sent := 0
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		for _, body := range []string{"\xff\xfe\x00\r\n", ""} {
			p.accept("POST", "/to/"+name, body)
			sent++
			q := r.wait(sent, patience)[sent-1]
			if check := checks[name]; check != nil {
				if err := check(q); err != nil {
					t.Errorf("%s, body %q: %v", name, body, err)
				}
			}
			args := arguments[name]
			if args == nil {
				continue
			}
			captured := filepath.Join(p.dir, "captured")
			if err := os.WriteFile(captured, slices.Concat(q.Raw, []byte("\r\n\r\n"), q.Body), 0o600); err != nil {
				t.Fatal(err)
			}
			out, errs, code := p.run(append([]string{"verify", "--raw", captured}, args...)...)
			if code != 0 {
				t.Errorf("%s, body %q: postern verify exits with %d:\n%s%s", name, body, code, out, errs)
			}
		}
	}
}
