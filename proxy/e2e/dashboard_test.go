package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"postern/proxy/e2e/browser"
)

// shownRow is one endpoint of the table on the overview.
const shownRow = `(() => { const row = [...document.querySelectorAll('tbody tr')].find((r) => r.dataset.key === %q); return row ? row.innerText : '' })()`

// figure is one of the large numbers.
func figure(tab *browser.Tab, key string) string {
	return browser.Eval[string](tab, fmt.Sprintf(`document.querySelector('[data-figure=%s] b').innerText`, key))
}

// The page shows what the API says, live, and a person who reads it finds what is wrong, mends it, and sees it mended.
func TestDashboard(t *testing.T) {
	t.Parallel()
	axe := browser.Axe(t)
	s := openShowroom(t, "")
	s.traffic()
	s.eventually(patience, "the breaker of partner-a to open", func() bool { return s.endpoint("partner-a").Breaker.State == "open" })
	s.eventually(patience, "all that can be delivered to be", func() bool { return len(s.good.requests()) >= 40 && len(s.slow.requests()) >= 12 })
	letter := s.dead("partner-a")
	tab := browser.Open(t, s.admin)
	tab.Look(1400, 1000, "light")
	tab.Go("/")
	tab.SeeText("[data-state]", "live")
	tab.See(`document.querySelectorAll('tbody tr').length === 5 && document.querySelectorAll('svg.spark').length === 5`)
	s.numbers(tab)
	tab.SeeText(".attention li", "partner-a breaker open after 12 failures in a row")
	tab.SeeText(".attention li", "crm-sync getting slower")
	tab.SeeText(".attention li", "ledger throttled")
	tab.Accessible(axe, "overview")

	s.lookAtEvent(tab, letter, axe)
	s.replayFromPage(tab, axe)
	s.actOnEndpoint(tab, axe)
	tab.Clean()
}

// numbers compares the overview with the API.
func (s *showroom) numbers(tab *browser.Tab) {
	var st struct {
		Pending       int `json:"pending"`
		AwaitingRetry int `json:"awaiting_retry"`
		InFlight      int `json:"in_flight"`
		DeadLetter    int `json:"dead_letter"`
	}
	s.eventually(patience, "the figures to be the API's", func() bool {
		s.api("GET", "status", "", &st)
		return figure(tab, "pending") == fmt.Sprint(st.Pending) && figure(tab, "awaiting_retry") == fmt.Sprint(st.AwaitingRetry) &&
			figure(tab, "in_flight") == fmt.Sprint(st.InFlight) && figure(tab, "dead_letter") == fmt.Sprint(st.DeadLetter)
	})
	if st.Pending == 0 || st.AwaitingRetry == 0 || st.DeadLetter == 0 {
		s.t.Errorf("there is nothing to compare: %+v", st)
	}
	for _, name := range []string{"orders", "crm-sync", "partner-a", "ledger", "http://" + s.denying.addr()} {
		s.eventually(patience, "the row of "+name+" to be the API's", func() bool {
			e := s.endpoint(name)
			row := browser.Eval[string](tab, fmt.Sprintf(shownRow, name))
			for _, want := range []string{e.Breaker.State, fmt.Sprint(e.depth()), milliseconds(*e.P50), milliseconds(*e.P95), milliseconds(*e.P99)} {
				if !strings.Contains(row, want) {
					return false
				}
			}
			return true
		})
	}
}

// milliseconds is how the page writes them.
func milliseconds(ms float64) string {
	if ms < 10 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", math.Round(ms))
}

// depth is everything that is not finished.
func (e endpointView) depth() int { return e.Queue.Pending + e.Queue.Waiting + e.Queue.InFlight }

// lookAtEvent reads an event's life, and what is hidden once it is asked for.
func (s *showroom) lookAtEvent(tab *browser.Tab, id, axe string) {
	t := s.t
	tab.Go("/#/event/" + id)
	tab.SeeText(".timeline", "Attempt 2")
	tab.SeeText(".timeline .next", "Nothing follows, unless somebody replays it.")
	tab.SeeText(".timeline .next", "All 2 attempts were used up; the last one failed because HTTP 503.")
	tab.Accessible(axe, "event")
	if text := browser.Eval[string](tab, "document.documentElement.outerHTML"); strings.Contains(text, "SEC-QUERY") || strings.Contains(s.log.String(), "revealed") {
		t.Error("a query shows, or was read, before anybody asked for it")
	}
	tab.Click("button", "Show them")
	tab.SeeText(".revealed", "?cid=SEC-QUERY")
	tab.SeeText(".revealed", "maintenance")
	s.eventually(patience, "the reveal to be logged", func() bool {
		return strings.Contains(s.log.String(), `"an event was revealed","event_id":"`+id)
	})
	// One that waits says when it goes on and why.
	var page struct{ Events []event }
	s.api("GET", "events?endpoint=ledger&state=failed", "", &page)
	tab.Go("/#/event/" + page.Events[0].ID)
	tab.SeeText(".timeline .next", "Next attempt in ")
	tab.SeeText(".timeline .next", "It waits because HTTP 429.")
	tab.SeeText(".timeline .next", "1 of 5 attempts used.")
	s.api("GET", "events?endpoint=partner-a&state=failed", "", &page)
	if len(page.Events) > 0 {
		tab.Go("/#/event/" + page.Events[0].ID)
		tab.SeeText(".timeline .next", "The endpoint's breaker is open until")
	}
}

// replayFromPage replays a finding's letters, after the receiver was mended, by the keyboard alone.
func (s *showroom) replayFromPage(tab *browser.Tab, axe string) {
	t := s.t
	tab.Go("/#/dead-letters")
	tab.SeeText(".patterns", "Credentials: 6 events were refused with 401 or 403")
	tab.Accessible(axe, "dead letters")
	s.denying.setAnswer(nil)
	before := len(s.denying.requests())
	// From the top of the page: to the first group's Replay button, and through the dialog.
	browser.Eval[bool](tab, "document.querySelector('.brand').focus(), true")
	s.tabTo(tab, "Replay …")
	tab.Press(kb.Enter)
	tab.SeeText("dialog .dry", "Dry run: 6 dead letters would be replayed")
	tab.Accessible(axe, "replay")
	if n := len(s.denying.requests()); n != before {
		t.Errorf("the dry run sent %d", n-before)
	}
	s.tabTo(tab, "Replay")
	tab.Press(kb.Enter)
	tab.SeeText("dialog .result", "6 of 6 dead letters are due again.")
	s.denying.wait(before+6, patience)
	tab.Press(kb.Enter) // the focus is on Close
	tab.See("!document.querySelector('dialog')")
	// Two that are chosen one by one, at a rate.
	tab.Go("/#/dead-letters?endpoint=partner-a")
	// The list of before may have had these alone, too: it is the filter that tells.
	tab.See("[...document.querySelectorAll('select')].some((s) => s.value === 'partner-a')")
	tab.See("document.querySelectorAll('tbody input[type=checkbox]').length >= 2 && [...document.querySelectorAll('tbody tr')].every((r) => r.innerText.includes('partner-a'))")
	browser.Eval[bool](tab, "([...document.querySelectorAll('tbody input[type=checkbox]')].slice(0, 2).forEach((c) => c.click()), true)")
	tab.Click("button", "Replay chosen (2)")
	tab.SeeText("dialog .dry", "Dry run: 2 dead letters would be replayed")
	browser.Eval[bool](tab, "document.getElementById('rate').value = '50', true")
	tab.Click("dialog button.primary", "Replay")
	tab.SeeText("dialog .result", "Started: 2 at 50 a second.")
	tab.Press(kb.Escape)
	tab.SeeText(".replays", "2 of 2 at 50 a second")
}

// tabTo presses the tabulator until the focus is on the button of that text.
func (s *showroom) tabTo(tab *browser.Tab, text string) {
	s.t.Helper()
	for range 60 {
		if browser.Eval[string](tab, "document.activeElement.innerText ?? ''") == text {
			if !browser.Eval[bool](tab, "document.activeElement.matches(':focus-visible') && getComputedStyle(document.activeElement).outlineStyle !== 'none'") {
				s.t.Errorf("the focus on %q is not seen", text)
			}
			return
		}
		tab.Press(kb.Tab)
	}
	s.t.Fatalf("the tabulator does not lead to %q", text)
}

// actOnEndpoint resets, pauses and resumes, and sees the events go.
func (s *showroom) actOnEndpoint(tab *browser.Tab, axe string) {
	s.mu.Lock()
	s.mend = true
	s.mu.Unlock()
	tab.Go("/#/endpoint/partner-a")
	tab.SeeText(".notice", "breaker is open until")
	tab.See("document.querySelector('svg.chart .p95')")
	tab.Accessible(axe, "endpoint")
	tab.Click("button", "Reset breaker")
	tab.SeeText("dialog h2", "Reset the breaker of partner-a?")
	tab.Click("dialog button", "Reset")
	tab.SeeText("dialog .result", "The breaker is closed.")
	tab.Press(kb.Escape)
	tab.SeeText(".facts", "closed")
	s.eventually(patience, "the waiting events to be delivered", func() bool { return s.endpoint("partner-a").depth() == 0 })
	tab.SeeText(".facts", "0 never tried, 0 failed, 0 in flight")
	tab.Click("button", "Pause")
	tab.Click("dialog button", "Pause")
	tab.SeeText("dialog .result", "Paused.")
	tab.Press(kb.Escape)
	tab.SeeText(".notice", "The endpoint is paused (paused by hand)")
	tab.Click("button", "Resume")
	tab.Click("dialog button", "Resume")
	tab.SeeText("dialog .result", "Resumed.")
	tab.Press(kb.Escape)
	tab.See("!document.querySelector('.notice')")
}

// Without the token the page comes and shows nothing; with it, it works; and a Postern that went away is told, and found
// again.
func TestDashboardToken(t *testing.T) {
	t.Parallel()
	axe := browser.Axe(t)
	p := newPostern(t, "")
	token := filepath.Join(p.dir, "token")
	must(t, os.WriteFile(token, []byte("TOKEN-42\n"), 0o600))
	p.writeConfig(fmt.Sprintf("listen: %s\nadmin: { listen: %s, token_file: %s }\n", strings.TrimPrefix(p.ingest, "http://"), strings.TrimPrefix(p.admin, "http://"), token))
	p.launch()
	p.eventually(patience, "the listener", func() bool { return p.answers("/readyz") == 401 })
	tab := browser.Open(t, p.admin)
	tab.Allow("401") // the browser tells of every refusal
	tab.Look(400, 800, "dark")
	tab.Go("/")
	tab.SeeText("dialog", "This listener asks for a token")
	tab.Accessible(axe, "token")
	tab.Press("TOKEN-41" + kb.Enter)
	tab.SeeText("dialog", "is not the one that Postern wants")
	tab.Press("TOKEN-42" + kb.Enter)
	tab.SeeText("[data-state]", "live")
	tab.SeeText(".attention", "Nothing: no breaker is open")
	tab.Reload()
	tab.SeeText("[data-state]", "live") // kept for this tab
	if kept := browser.Eval[string](tab, "JSON.stringify([localStorage, document.cookie])"); strings.Contains(kept, "TOKEN") {
		t.Errorf("the token is kept for longer than the tab: %s", kept)
	}
	tab.Allow("ERR_CONNECTION")
	tab.Allow("ERR_INCOMPLETE_CHUNKED")
	tab.Allow("ERR_EMPTY_RESPONSE")
	if code := p.stop(patience); code != 0 {
		t.Errorf("with a page open it stops with %d", code)
	}
	tab.SeeText("[role=alert]", "Postern does not answer.")
	p.launch()
	p.eventually(patience, "the listener", func() bool { return p.answers("/readyz") == 401 })
	tab.SeeText("[data-state]", "live")
	tab.Clean()
}

// Where as many watch as may, the page asks every few seconds instead; when one leaves, it listens again.
func TestDashboardPolls(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	p := startPostern(t, calm)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for range 32 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.admin+"/api/v1/stream", nil)
		must(t, err)
		resp, err := http.DefaultTransport.RoundTrip(req)
		must(t, err)
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("stream: %d", resp.StatusCode)
		}
	}
	tab := browser.Open(t, p.admin)
	tab.Allow("503")
	tab.Go("/")
	tab.SeeText("[data-state]", "every few seconds")
	p.waitState(p.accept("POST", "/"+r.url("/"), "x"), "delivered", patience)
	tab.See(`document.querySelector('[data-figure=per_minute] small').innerText === '1 in an hour'`)
	leave()
	tab.SeeText("[data-state]", "live")
	for _, place := range []string{"nonsense", "constructor", "%zz"} { // a mistyped address is told, and not shown as the overview
		tab.Go("/#/" + place)
		tab.SeeText("h1", "No such page")
	}
	tab.Go("/#/dead-letters/%zz")
	tab.SeeText("h1", "Dead letters")
	tab.Clean()
}

// Every page stands in both colours and at both widths: nothing is cut off sideways, and axe-core finds nothing serious.
func TestDashboardLooks(t *testing.T) {
	t.Parallel()
	axe := browser.Axe(t)
	s := openShowroom(t, "")
	s.traffic()
	s.eventually(patience, "the breaker of partner-a to open", func() bool { return s.endpoint("partner-a").Breaker.State == "open" })
	s.dead("partner-a")
	var waiting struct{ Events []event }
	s.eventually(patience, "an event of ledger to wait", func() bool {
		s.api("GET", "events?endpoint=ledger&state=failed", "", &waiting)
		return len(waiting.Events) > 0
	})
	tab := browser.Open(t, s.admin)
	tab.Go("/")
	tab.SeeText("[data-state]", "live")
	tab.See("document.querySelectorAll('svg.spark').length > 3")
	for _, look := range []struct {
		width   int64
		colours string
	}{{1400, "light"}, {400, "dark"}, {400, "light"}, {1400, "dark"}} {
		tab.Look(look.width, 900, look.colours)
		for name, place := range map[string]string{"overview": "", "endpoint": "endpoint/crm-sync", "events": "events", "event": "event/" + waiting.Events[0].ID, "dead-letters": "dead-letters"} {
			where := fmt.Sprintf("%s-%s-%d", name, look.colours, look.width)
			tab.Go("/#/" + place)
			tab.See(fmt.Sprintf("location.hash === %q && document.querySelector('h1') && !document.querySelector('.empty') && document.querySelector('table, figure, .timeline')", "#/"+place))
			if wide := browser.Eval[json.Number](tab, "document.documentElement.scrollWidth - innerWidth"); wide.String() != "0" && !strings.HasPrefix(wide.String(), "-") {
				t.Errorf("%s: %s pixels too wide", where, wide)
			}
			tab.Accessible(axe, where)
			shoot(t, tab, where)
		}
	}
	tab.Go("/#/")
	for _, width := range []int64{1400, 1200, 1024, 768, 400} {
		tab.Look(width, 900, "light")
		tab.See("document.querySelectorAll('.glance > div').length === 9")
		if cut := browser.Eval[[]string](tab, cutFigures); len(cut) > 0 {
			t.Errorf("at %d pixels these figures are cut off, or leave a hole: %v", width, cut)
		}
		shoot(t, tab, fmt.Sprintf("glance-%d", width))
	}
	tab.Clean()
}

// cutFigures are those of the glance that have no room for their number, and the glance itself where its ground, which
// shows after the last figure, is not theirs.
const cutFigures = `(() => {
	const ground = (e) => getComputedStyle(e).backgroundColor, clear = 'rgba(0, 0, 0, 0)'
	const glance = document.querySelector('.glance'), cut = [...glance.querySelectorAll('b')].filter((b) => b.scrollWidth > b.clientWidth).map((b) => b.innerText)
	return [...glance.children].every((e) => [clear, ground(glance)].includes(ground(e))) ? cut : [...cut, 'glance']
})()`

// shoot keeps a picture for people who want to look.
func shoot(t *testing.T, tab *browser.Tab, name string) {
	t.Helper()
	if dir := os.Getenv("POSTERN_SHOTS"); dir != "" {
		must(t, os.WriteFile(filepath.Join(dir, name+".png"), tab.Shot(), 0o600))
	}
}

// A spool that is full is the first thing to look at, in words, and no longer once there is room.
func TestDashboardNotReady(t *testing.T) {
	t.Parallel()
	axe := browser.Axe(t)
	addr := freeAddr(t)
	p := startPostern(t, strings.Replace(downForNow, "{ max_endpoint_share: 1 }", "{ max_endpoint_share: 1, max_bytes: 4MiB }", 1))
	tab := browser.Open(t, p.admin)
	tab.Look(400, 900, "light")
	tab.Go("/")
	tab.SeeText(".attention", "and events are taken")
	if accepted := pour(t, p, 4000, "/http://"+addr+"/", "e"); len(accepted) == 4000 {
		t.Fatal("the spool is not full")
	}
	const why = "Not ready: the spool is full: not every event fits, smaller ones may"
	tab.SeeText(".attention li", why)
	tab.SeeText("[role=alert]", why)
	tab.Accessible(axe, "not ready")
	shoot(t, tab, "not-ready")
	newReceiverOn(t, addr, nil, nil)
	tab.SeeText(".attention", "and events are taken")
	tab.See("!document.querySelector('.notice')")
	tab.Clean()
}

// answers is the status of a GET, 0 where nobody listens.
func (p *postern) answers(path string) int {
	resp, err := client.Get(p.admin + path)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}
