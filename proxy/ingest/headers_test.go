package ingest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"postern/spool"
)

// lines shows an event's headers one per line, in their order.
func lines(e *spool.Event) string {
	var b strings.Builder
	for _, h := range e.Headers {
		fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
	}
	return b.String()
}

func TestHeadersThatPassOn(t *testing.T) {
	d := open(t)
	const agent = "User-Agent: curl/8\n"
	tests := []struct{ name, sent, want string }{
		{"end-to-end, values in order", "X-B: 2\nAuthorization: Basic dTpw\nX-A: first\nCookie: a=1\nX-A: second, third\nX-Empty:\n" + agent,
			"Authorization: Basic dTpw\nCookie: a=1\nUser-Agent: curl/8\nX-A: first\nX-A: second, third\nX-B: 2\nX-Empty: \n"},
		{"bytes of a value", "X-A: \"q\\\"\" é \xff\t z \n" + agent, "User-Agent: curl/8\nX-A: \"q\\\"\" é \xff\t z\n"},
		{"nothing is added but the agent", "", "User-Agent: Postern/1.2.3\n"},
		{"an empty agent is one", "User-Agent:\n", "User-Agent: \n"},
		{"an agent that belongs to the connection is none", "User-Agent: x\nConnection: user-agent\n", "User-Agent: Postern/1.2.3\n"},
		{"hop by hop", "Keep-Alive: 5\nTE: trailers\nUpgrade: h2c\nProxy-Connection: x\nProxy-Authorization: x\nProxy-Anything: x\n" + agent, agent},
		{"named by Connection", "Connection: close, X-Mine ,,x-other\nConnection: keep-alive, X-Third\nX-Mine: 1\nX-Other: 2\nX-Third: 3\nX-Stays: 4\n" + agent, agent + "X-Stays: 4\n"},
		{"of proxies", "Forwarded: for=1\nVia: 1.1 x\nX-Forwarded-For: 1\nX-Forwarded-Proto: https\nX-Real-Ip: 4\n" + agent, agent + "X-Real-Ip: 4\n"},
		{"idempotency key", "Idempotency-Key: \"k 1\"\n" + agent, "Idempotency-Key: \"k 1\"\n" + agent},
		{"ours", "Postern-Event-Id: a\nPostern-Attempt: 3\nPostern_url: x\n" + agent, "Postern_url: x\n" + agent},
		{"Pragma alone", "Pragma: no-cache\n" + agent, "Pragma: no-cache\n" + agent},
		{"Pragma and Cache-Control", "Pragma: no-cache\nCache-Control: no-cache\n" + agent, "Cache-Control: no-cache\nPragma: no-cache\n" + agent},
		{"Accept-Encoding as sent", "Accept-Encoding: br\n" + agent, "Accept-Encoding: br\n" + agent},
		{"origin of an own page", "Origin: http://localhost:3000\nReferer: http://localhost:3000/\n" + agent, "Origin: http://localhost:3000\nReferer: http://localhost:3000/\n" + agent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := d.accepted("POST /https://x.example/ HTTP/1.1\nHost: HOST\nContent-Length: 0\n" + strings.TrimSuffix(tt.sent, "\n"))
			if got := lines(e); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

func TestIdempotencyKeyIsRead(t *testing.T) {
	d := open(t)
	e := d.accepted("POST /https://x.example/ HTTP/1.1\nHost: HOST\nIdempotency-Key: k1\nContent-Length: 0")
	if e.IdempotencyKey != "k1" {
		t.Errorf("key %q", e.IdempotencyKey)
	}
	d.spool.events = nil
	d.refused(t, "POST /https://x.example/ HTTP/1.1\nHost: HOST\nIdempotency-Key: SECRET\nIdempotency-Key: SECRET2\nContent-Length: 0",
		400, "bad_header", "Idempotency-Key: it is given more than once")
}

func TestPreferIsRebuilt(t *testing.T) {
	d := open(t)
	d.waiters.asked = nil
	tests := []struct {
		sent []string
		want []string
	}{
		{[]string{"respond-async"}, []string{"respond-async"}},
		{[]string{"wait=0"}, nil},
		{[]string{"return=minimal, wait=0, x"}, []string{"return=minimal, x"}},
		{[]string{`foo="a, wait=5, b";bar, WAIT = "0" ;p=1,z`}, []string{`foo="a, wait=5, b";bar, z`}},
		{[]string{"wait=0", " a ,  b"}, []string{"a ,  b"}},
		{[]string{`x="\", wait=5"`}, []string{`x="\", wait=5"`}},
		{[]string{`x="unended, wait=5`}, []string{`x="unended, wait=5`}},
		{[]string{"wait=abc, a"}, []string{"a"}},
		{[]string{"waiting=5"}, []string{"waiting=5"}},
	}
	for _, tt := range tests {
		e := d.accepted("POST /https://x.example/ HTTP/1.1\nHost: HOST\nContent-Length: 0\nPrefer: " + strings.Join(tt.sent, "\nPrefer: "))
		if got := values(e, "Prefer"); !slices.Equal(got, tt.want) {
			t.Errorf("%q passes on as %q, want %q", tt.sent, got, tt.want)
		}
	}
}
