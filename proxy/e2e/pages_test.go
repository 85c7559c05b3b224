package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"postern/proxy/e2e/browser"
)

//go:embed testdata/attack.js
var attackScript string

// gullible is a listener as Postern's must not be: it takes whatever a page sends and lets the page read the answer. It
// shows which tricks of the attacking page really send something.
type gullible struct {
	mu   sync.Mutex // guards seen
	seen map[string]bool
}

func (g *gullible) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodOptions {
		g.mu.Lock()
		g.seen[path.Base(r.URL.Path)] = true
		g.mu.Unlock()
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Allow-Methods", "PUT, DELETE")
	h.Set("Access-Control-Allow-Headers", "content-type, authorization, postern-event-id")
	io.WriteString(w, "GULLIBLE")
}

func (g *gullible) names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.seen))
}

// A page of another origin, in a real Chromium, tries all that pages can do against both listeners: nothing is spooled,
// changed or read. Nor where the attacker's host name has come to resolve to the listener's address.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	ctx := browser.Start(t)
	var hidden secrets
	r := newReceiver(t, script(status(410)))
	p := startPostern(t, calm+fmt.Sprintf("endpoints:\n  - { name: partner, url: %q, retry: { max_attempts: 1 } }\n", r.url("/in")))
	id := p.acceptSecrets(&hidden, "http", r.addr())
	p.waitState(id, "dead_letter", patience)
	hidden.words = append(hidden.words, "GULLIBLE", "partner", id)

	control := &gullible{seen: map[string]bool{}}
	open := httptest.NewServer(control)
	t.Cleanup(open.Close)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<body><script>"+attackScript+"</script></body>")
	}))
	t.Cleanup(evil.Close)
	if err := chromedp.Do(ctx, chromedp.Navigate(as("evil.example", evil.URL))); err != nil {
		t.Fatal(err)
	}

	read := attack(t, ctx, open.URL+"/{}")
	p.eventually(patience, "every trick to reach a listener that is open to pages", func() bool { return len(control.names()) >= len(read) })
	if got := read["fetch-get"]; got != "GULLIBLE" || read["sandboxed-fetch"] != "GULLIBLE" {
		t.Errorf("the page cannot read what is open to it: %v", read)
	}
	for _, base := range []string{p.ingest, as("localhost", p.ingest), as("rebound.example", p.ingest)} {
		before := p.refusedPages()
		for _, door := range []string{"/" + r.url("/{}"), "/to/partner/{}"} {
			nothingRead(t, attack(t, ctx, base+door), base+door)
		}
		p.eventually(patience, "the page's requests to be refused", func() bool { return p.refusedPages() >= before+2*len(read) })
	}
	doors := []string{"/api/v1/events/" + id + "?reveal=1", "/api/v1/dead-letters/purge", "/api/v1/events/" + id + "/retry", "/api/v1/endpoints/partner/pause"}
	for base, doors := range map[string][]string{p.admin: doors, as("localhost", p.admin): doors[:2], as("rebound.example", p.admin): doors[:2]} {
		for _, door := range doors {
			nothingRead(t, attack(t, ctx, base+door), base+door)
		}
	}
	// Rebinding: the page's own origin leads to the listener now, so that the browser lets it read all answers.
	for base, doors := range map[string][]string{p.ingest: {"/" + r.url("/{}"), "/to/partner/{}"}, p.admin: doors} {
		reboundPage(t, ctx, as("rebound.example", base))
		for _, door := range doors {
			for trick, text := range attack(t, ctx, door) {
				if found := hidden.in(text); len(found) > 0 {
					t.Errorf("%s, rebound, %s: reads %v", door, trick, found)
				}
			}
		}
	}
	p.untouched(id, r)
}

// as is an address by another name of its host.
func as(host, base string) string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(base, "http://"))
	return "http://" + net.JoinHostPort(host, port)
}

// attack runs all tricks of the page and returns what they read.
func attack(t *testing.T, ctx context.Context, url string) map[string]string {
	t.Helper()
	call, err := json.Marshal(url)
	if err != nil {
		t.Fatal(err)
	}
	read, err := chromedp.Run(ctx, chromedp.Evaluate[map[string]string]("attack("+string(call)+")", chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	if len(read) < 30 {
		t.Fatalf("%s: only %d tricks were tried", url, len(read))
	}
	return read
}

func nothingRead(t *testing.T, read map[string]string, door string) {
	t.Helper()
	for trick, text := range read {
		if text != "" && text != "nothing heard" {
			t.Errorf("%s, %s: reads %q", door, trick, text)
		}
	}
}

// reboundPage opens whatever the listener answers under the attacker's name, and puts the attacker's script there: it was
// loaded before the name led here.
func reboundPage(t *testing.T, ctx context.Context, base string) {
	t.Helper()
	bypass := chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true})
		return err
	})
	if err := chromedp.Do(ctx, bypass, chromedp.Navigate(base+"/")); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](attackScript+"; location.origin")); err != nil {
		t.Fatal(err)
	}
}

// refusedPages is how many requests of pages ingest has refused.
func (p *postern) refusedPages() int {
	return int(p.metric("postern_rejected_total", `reason="foreign_page"`))
}

// untouched looks whether all is as it was before the pages came: one dead letter, asked for once, and an endpoint that
// is not paused.
func (p *postern) untouched(id string, r *receiver) {
	p.t.Helper()
	var events struct{ Events []event }
	p.api("GET", "events?limit=1000", "", &events)
	if len(events.Events) != 1 || events.Events[0].ID != id || events.Events[0].State != "dead_letter" {
		p.t.Errorf("the spool has %+v", events.Events)
	}
	if n := len(r.requests()); n != 1 {
		p.t.Errorf("the receiver got %d requests, want the first one alone", n)
	}
	if shown := p.get("/api/v1/endpoints/partner"); !strings.Contains(shown, `"paused":false`) {
		p.t.Errorf("the endpoint: %s", shown)
	}
	if strings.Contains(p.log.String(), "revealed") || strings.Contains(p.log.String(), "by hand") {
		p.t.Error("the log tells of a call that a page has made")
	}
}
