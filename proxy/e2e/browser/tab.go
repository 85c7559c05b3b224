package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take to show something.
const patience = time.Minute

// Tab is a tab on a page under test. What its console says and whom it asks is watched from the start: Clean judges it.
type Tab struct {
	t    testing.TB
	ctx  context.Context
	base string

	mu      sync.Mutex // guards what follows
	console []string
	foreign []string
	allowed []string
}

// Open starts a browser with a tab that is to ask base (http://HOST:PORT) and nobody else.
func Open(t testing.TB, base string) *Tab {
	t.Helper()
	ctx := Start(t)
	tab := &Tab{t: t, ctx: ctx, base: base}
	// Both subscriptions are there when these calls return, and end with the browser.
	said, asked := chromedp.Console(ctx), chromedp.Events(ctx, network.RequestWillBeSent)
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for m, err := range said {
			if err != nil {
				return
			}
			tab.note(&tab.console, m.String()+" "+m.URL)
		}
	}()
	go func() {
		for e, err := range asked {
			if err != nil {
				return
			}
			if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && u.Scheme+"://"+u.Host != base {
				tab.note(&tab.foreign, e.Request.URL)
			}
		}
	}()
	return tab
}

func (tab *Tab) note(list *[]string, text string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	*list = append(*list, text)
}

// Allow lets messages of the console pass that contain this, for a test that makes the page meet them.
func (tab *Tab) Allow(text string) { tab.note(&tab.allowed, text) }

// Clean fails the test where the console said anything, or anybody but base was asked.
func (tab *Tab) Clean() {
	tab.t.Helper()
	tab.mu.Lock()
	defer tab.mu.Unlock()
	for _, line := range tab.console {
		if !slices.ContainsFunc(tab.allowed, func(text string) bool { return strings.Contains(line, text) }) {
			tab.t.Errorf("the console says: %s", line)
		}
	}
	for _, line := range tab.foreign {
		tab.t.Errorf("the page asks %s", line)
	}
}

// Go opens an address below base. Another place of the same page is reached without loading it anew.
func (tab *Tab) Go(path string) {
	tab.t.Helper()
	tab.do(chromedp.Navigate(tab.base + path))
}

func (tab *Tab) do(actions ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	if err := chromedp.Do(tab.ctx, actions...); err != nil {
		tab.t.Fatal(err)
	}
}

// Eval evaluates an expression of JavaScript, waits where it is a promise, and decodes its value.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	v, err := chromedp.Run(tab.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tab.t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

// See waits until an expression is true. One that throws is not true yet: what it looks at may be on its way.
func (tab *Tab) See(expression string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	try := func(otherwise string) string {
		return fmt.Sprintf("(() => { try { return !!(%s) } catch (e) { return %s } })()", expression, otherwise)
	}
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](try("false"), chromedp.WithPollingInterval(30*time.Millisecond))); err != nil {
		now := Eval[string](tab, "String("+try("e")+")")
		tab.t.Fatalf("waited %v in vain for %s (%v; now: %s); the page says:\n%s", patience, expression, err, now, Eval[string](tab, "document.body.innerText"))
	}
}

// SeeText waits until the element shows this text.
func (tab *Tab) SeeText(selector, text string) {
	tab.t.Helper()
	tab.See(fmt.Sprintf("[...document.querySelectorAll(%s)].some((e) => e.innerText.includes(%s))", quote(selector), quote(text)))
}

// Press types one key or several, as somebody at the keyboard.
func (tab *Tab) Press(keys string) {
	tab.t.Helper()
	tab.do(chromedp.KeyEvent(keys))
}

// Click waits for a button or link of that text within selector, and clicks it.
func (tab *Tab) Click(selector, text string) {
	tab.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%s)].find((e) => e.innerText.trim().startsWith(%s) && !e.disabled)", quote(selector), quote(text))
	tab.See(find)
	Eval[bool](tab, "("+find+".click(), true)")
}

// Look sets the window's size and colours: light or dark.
func (tab *Tab) Look(width, height int64, colours string) {
	tab.t.Helper()
	tab.do(chromedp.EmulateViewport(width, height))
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}
	if _, err := chromedp.Call(tab.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		tab.t.Fatal(err)
	}
}

// Shot is a picture of the window as a PNG.
func (tab *Tab) Shot() []byte {
	tab.t.Helper()
	png, err := chromedp.Run(tab.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		tab.t.Fatal(err)
	}
	return png
}

// Reload loads the page anew.
func (tab *Tab) Reload() {
	tab.t.Helper()
	tab.do(chromedp.Reload())
}

// violation is what axe-core found.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// Accessible has axe-core look at the page as it stands, and fails the test for what it takes for serious or critical.
func (tab *Tab) Accessible(axe, where string) {
	tab.t.Helper()
	const run = `(async () => JSON.stringify((await axe.run(document, {resultTypes: ['violations']})).violations.map(({id, impact, help, nodes}) =>
		({id, impact, help, nodes: nodes.slice(0, 3).map(({html, failureSummary}) => ({html, failureSummary}))}))))()`
	if !Eval[bool](tab, "typeof axe === 'object'") {
		Eval[bool](tab, axe+";true")
	}
	var found []violation
	if err := json.Unmarshal([]byte(Eval[string](tab, run)), &found); err != nil {
		tab.t.Fatal(err)
	}
	for _, v := range found {
		if v.Impact == "serious" || v.Impact == "critical" {
			tab.t.Errorf("%s: %s (%s): %s: %+v", where, v.ID, v.Impact, v.Help, v.Nodes)
		} else {
			tab.t.Logf("%s: %s (%s): %s: %+v", where, v.ID, v.Impact, v.Help, v.Nodes)
		}
	}
}

func quote(s string) string {
	text, _ := json.Marshal(s) // a string can always be encoded
	return string(text)
}
