package e2e

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/proxy/e2e/browser"
	"postern/proxy/ui"
)

// outlooks are events and endpoints, and what the page says follows. Times are seconds from now.
var outlooks = []struct{ name, event, endpoint, says string }{
	{"waits for its time", `{state: 'failed', next_attempt_at: at(250), last_error: 'http_503', charged_attempts: 2, max_attempts: 5}`, `{}`,
		"Next attempt in 4 min 10 s, at | It waits because HTTP 503. | 2 of 5 attempts used."},
	{"behind an open breaker", `{state: 'failed', next_attempt_at: at(-5), last_error: 'timeout', charged_attempts: 1, max_attempts: 5}`, `{breaker: {state: 'open', opened_at: at(-60), cooldown_seconds: 300}}`,
		"Due, and held back. | It waits because no answer came within the timeout (timeout). | The endpoint's breaker is open until | no event is charged an attempt."},
	{"paused", `{state: 'pending', next_attempt_at: at(-5), charged_attempts: 0, max_attempts: 5}`, `{paused: true, pause_reason: '410'}`, "Due, and held back. | The endpoint is paused (410): nothing is sent until somebody resumes it."},
	{"throttled", `{state: 'pending', next_attempt_at: at(-5), charged_attempts: 0, max_attempts: 5}`, `{limiter: {throttled_until: at(90)}}`, "The endpoint said 429: nothing is sent until"},
	{"limited", `{state: 'pending', next_attempt_at: at(-5), charged_attempts: 0, max_attempts: 5}`, `{limiter: {held_by: 'rate_limited', next_allowed_at: at(3)}}`, "The endpoint's limits have no room now. The next may leave at"},
	{"half open", `{state: 'failed', next_attempt_at: at(-5), charged_attempts: 1, max_attempts: 5}`, `{breaker: {state: 'half_open'}}`, "half open: one attempt at a time"},
	{"delayed", `{state: 'pending', next_attempt_at: at(3600), charged_attempts: 0, max_attempts: 5}`, `{}`, "Next attempt in 1 h, at | The application asked for this delay."},
	{"due", `{state: 'pending', next_attempt_at: at(-1), charged_attempts: 0, max_attempts: 5}`, `{}`, "Due now: it goes as soon as a slot is free."},
	{"running", `{state: 'in_flight', attempt_count: 2, charged_attempts: 2, max_attempts: 5}`, `{}`, "Attempt 3 is running. | 2 of 5 attempts used."},
	{"left the configuration", `{state: 'failed', next_attempt_at: at(9), charged_attempts: 1, max_attempts: null}`, `null`, "1 attempt used; the endpoint left the configuration"},
	{"delivered", `{state: 'delivered', accepted_at: at(-100), delivered_at: at(-30)}`, `{}`, "Nothing follows: delivered 1 min 10 s after it was accepted"},
	{"exhausted", `{state: 'dead_letter', dead_reason: 'exhausted', charged_attempts: 5, last_error: 'dns'}`, `{}`, "Nothing follows, unless somebody replays it. | All 5 attempts were used up; the last one failed because the name could not be resolved (dns)."},
	{"expired", `{state: 'dead_letter', dead_reason: 'expired', charged_attempts: 0}`, `{}`, "Its time to live passed before it could be delivered."},
	{"permanent", `{state: 'dead_letter', dead_reason: 'permanent', attempts: [{error: 'http_404', status_code: 404}]}`, `{}`, "No retry mends this: HTTP 404."},
	{"gone", `{state: 'dead_letter', dead_reason: 'gone'}`, `{}`, "The receiver said 410 Gone"},
}

// TestPageScript tries the parts of the pages that decide, in the browser that runs them.
func TestPageScript(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(ui.Dashboard())
	t.Cleanup(server.Close)
	tab := browser.Open(t, server.URL)
	tab.Allow("404") // there is no API here
	tab.Go("/ui/format.js")
	const prepare = `(async () => {
		const {outlook} = await import('/ui/outlook.js')
		const now = Date.now(), at = (s) => new Date(now + s * 1000).toISOString()
		const base = {paused: false, breaker: {state: 'closed'}, limiter: {limits: []}, queue: {}}
		const endpoint = %s, event = {attempts: [], ...%s}
		const {next, why} = outlook(event, endpoint && {...base, ...endpoint, limiter: {...base.limiter, ...endpoint.limiter}, breaker: {...base.breaker, ...endpoint.breaker}}, now)
		return [next, ...why].join(' | ')
	})()`
	for _, c := range outlooks {
		got := browser.Eval[string](tab, fmt.Sprintf(prepare, c.endpoint, c.event))
		for _, want := range strings.Split(c.says, " | ") {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not said in %q", c.name, want, got)
			}
		}
	}
	words := browser.Eval[map[string]string](tab, `(async () => {
		const f = await import('/ui/format.js')
		return {
			'0.4 ms': f.ms(0.42), '12 ms': f.ms(12.4), '3.21 s': f.ms(3210), '15.0 s': f.ms(15000), '–': f.ms(null), '5.1 MiB': f.bytes(5.1 * 1048576), '12 B': f.bytes(12),
			'59 s': f.duration(59999), '4 min 10 s': f.duration(250000), '2 h': f.duration(7200000), '3 d 4 h': f.duration(76 * 3600000), '0 s': f.duration(-5),
			'1,234 events': f.plural(1234, 'event'), '1 event': f.plural(1, 'event'), '30 s': f.windowName(30), '1 min': f.windowName(60), '24 h': f.windowName(86400),
		}
	})()`)
	for want, got := range words {
		if got != want {
			t.Errorf("written as %q, want %q", got, want)
		}
	}
	if text := browser.Eval[string](tab, patchScript); text != "" {
		t.Error(text)
	}
	tab.Clean()
}

// patchScript brings a list from one random state to the next 300 times: the result is that state, an element with a key
// stays the same element, and the focus stays where it was.
const patchScript = `(async () => {
	const {h, patch} = await import('/ui/dom.js')
	let seed = 7
	const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n
	const list = document.createElement('div')
	document.documentElement.append(list)
	const build = (keys) => keys.map((k) => k < 0 ? 'text ' + -k : h('p', {'data-key': k, class: random(2) ? 'a' : null}, h('button', {type: 'button', onclick: () => {}}, 'b' + k), random(2) ? h('i', {}, String(random(5))) : null))
	for (let round = 0; round < 300; round++) {
		const keys = [...Array(12).keys()].filter(() => random(3)).sort(() => random(3) - 1)
		if (random(4) === 0) keys.splice(random(keys.length + 1), 0, -1 - random(9))
		const next = build(keys), want = next.map((n) => n.outerHTML ?? n).join('')
		const before = new Map([...list.children].map((c) => [c.dataset.key, c]))
		const focus = list.querySelector('button'), key = focus?.parentNode.dataset.key
		focus?.focus()
		patch(list, next)
		const got = [...list.childNodes].map((n) => n.outerHTML ?? n.data).join('')
		if (got !== want) return 'round ' + round + ': ' + got + ' instead of ' + want
		for (const c of list.children) if (before.has(c.dataset.key) && before.get(c.dataset.key) !== c) return 'round ' + round + ': element ' + c.dataset.key + ' was made anew'
		if (focus && keys.includes(Number(key)) && document.activeElement !== focus) return 'round ' + round + ': the focus is lost'
		for (const c of list.querySelectorAll('button')) if (!c.onclick) return 'round ' + round + ': a button lost what it does'
	}
	return ''
})()`
