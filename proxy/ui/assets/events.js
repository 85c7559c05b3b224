// Events: a list, and the life of one.
import { h } from './dom.js'
import { get, name, query } from './api.js'
import { because, bytes, clock, count, ms, plural, ago, span, until, duration } from './format.js'
import { deleteEvent, retryEvent } from './actions.js'
import { outlook } from './outlook.js'
import { eventState, facts, link, mark, notice, say, table, title } from './widgets.js'

const STATES = ['', 'pending', 'in_flight', 'failed', 'delivered', 'dead_letter']

export const eventColumns = () => [
  { name: 'id', title: 'Event', rowHead: true, class: 'name', cell: (e) => h('a.id', { href: '#/event/' + name(e.id) }, e.id) },
  { name: 'state', title: 'State', cell: (e) => eventState(e.state) },
  { name: 'endpoint', title: 'Endpoint', class: 'name', cell: (e) => link('endpoint/' + name(e.endpoint), e.endpoint) },
  { name: 'attempts', title: 'Attempts', num: true, cell: (e) => e.max_attempts ? `${e.charged_attempts} of ${e.max_attempts}` : e.charged_attempts },
  { name: 'error', title: 'Last result', cell: (e) => e.last_error ?? e.last_status_code ?? '–' },
  { name: 'accepted', title: 'Accepted', num: true, cell: (e) => clock(e.accepted_at) },
]

export function eventsView(ctx, _, first) {
  let params = first, pages = [], next = null, failed = null, loading = false
  const load = async (cursor) => {
    loading = true
    const asked = params
    try {
      const answer = await get('events' + query({ state: params.state, endpoint: params.endpoint, limit: 100, cursor }))
      if (asked !== params) return
      pages = cursor ? [...pages, ...answer.events] : answer.events
      next = answer.next_cursor
      failed = null
    } catch (err) {
      failed = err
    }
    loading = false
    ctx.redraw()
  }
  load()
  const again = setInterval(() => { if (!document.hidden && pages.length <= 100 && !loading) load() }, 3000)
  const change = (more) => ctx.go({ ...params, ...more })
  return {
    title: () => 'Events',
    stop: () => clearInterval(again),
    update(to) {
      params = to
      pages = []
      next = null
      load()
    },
    render: () => [
      title('Events'),
      h('div.bar', {},
        h('label', {}, 'State ', h('select', { onchange: (e) => change({ state: e.target.value }) }, STATES.map((s) => h('option', { value: s, selected: (params.state ?? '') === s }, s ? s.replace('_', ' ') : 'any')))),
        h('label', {}, 'Endpoint ', endpointSelect(ctx, params.endpoint, (endpoint) => change({ endpoint }))),
        h('form.jump', { onsubmit: jump }, h('label', {}, 'Event ID ', h('input', { name: 'id', type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: 'evt_…' })), h('button', { type: 'submit' }, 'Open'))),
      failed ? notice('bad', failed.message) : null,
      table({ caption: 'Events, newest first', columns: eventColumns(), rows: pages, key: (e) => e.id, empty: loading ? 'Looking …' : 'No event matches.' }),
      next ? h('div.buttons', {}, h('button', { type: 'button', disabled: loading, onclick: () => load(next) }, 'Show older ones')) : null,
    ],
  }
}

function jump(e) {
  e.preventDefault()
  const id = new FormData(e.target).get('id').trim()
  if (id) location.hash = '#/event/' + name(id)
}

export function endpointSelect(ctx, chosen, change) {
  const names = new Set((ctx.data.endpoints?.endpoints ?? []).map((e) => e.name))
  if (chosen) names.add(chosen)
  return h('select', { onchange: (e) => change(e.target.value) }, h('option', { value: '' }, 'any'), [...names].map((n) => h('option', { value: n, selected: chosen === n }, n)))
}

export function eventView(ctx, id) {
  let event = null, revealed = null, failed = null, over = false
  const load = async () => {
    try {
      event = await get('events/' + name(id))
      failed = null
    } catch (err) {
      failed = err
    }
    if (!over) ctx.redraw()
  }
  const reveal = async () => {
    try {
      revealed = await get(`events/${name(id)}?reveal=1`)
      say('Revealed: target, headers and body follow.')
    } catch (err) {
      failed = err
    }
    ctx.redraw()
  }
  load()
  const again = setInterval(() => { if (!document.hidden && !(event && event.state === 'delivered')) load() }, 1500)
  return {
    title: () => 'Event ' + id,
    stop: () => {
      over = true
      clearInterval(again)
    },
    render() {
      if (!event) return [title(id), failed ? notice('bad', failed.message) : h('p.empty', {}, 'Looking …')]
      const done = event.state === 'delivered'
      const after = () => { load() }
      return [
        title(h('span.id', {}, event.id), h('div.buttons', {},
          done || event.state === 'in_flight' ? null : h('button.primary', { type: 'button', onclick: () => retryEvent(event, after) }, event.state === 'dead_letter' ? 'Replay' : 'Try now'),
          event.state === 'in_flight' ? null : h('button.danger', { type: 'button', onclick: () => deleteEvent(event, after) }, 'Delete'))),
        failed ? notice('bad', failed.message) : null,
        facts(['State', eventState(event.state)], ['Endpoint', link('endpoint/' + name(event.endpoint), event.endpoint)], ['Request', `${event.method} ${event.url}`, h('small', {}, ' query hidden')],
          ['Body', bytes(event.size)], ['Accepted', `${clock(event.accepted_at)} (${ago(event.accepted_at)})`], ['Attempts', `${event.attempt_count} made, ${event.charged_attempts} of ${event.max_attempts ?? '?'} charged`]),
        h('section', { 'aria-labelledby': 'line' }, h('h2', { id: 'line' }, 'What happened, and what follows'), timeline(event, ctx.endpoint(event.endpoint))),
        h('section', { 'aria-labelledby': 'content' }, h('h2', { id: 'content' }, 'Request and last answer'),
          revealed ? content(revealed) : h('div.hidden', {}, h('p', {}, 'Target, headers, body and the kept answer are hidden. Showing them is logged with your address.'), h('button', { type: 'button', onclick: reveal }, 'Show them'))),
      ]
    },
  }
}

// timeline is every attempt with what lay between, and what comes.
function timeline(event, endpoint) {
  const steps = [step('ok', 'off', event.accepted_at, 'Accepted', null)]
  let last = Date.parse(event.accepted_at), before = 0
  const longest = Math.max(...event.attempts.map((a) => a.duration_ms), 1)
  for (const a of event.attempts) {
    const start = Date.parse(a.started_at)
    if (before && a.number > before + 1) steps.push(h('li.gap', { 'data-key': 'skip' }, `attempts ${before + 1} to ${a.number - 1} are not kept`))
    else steps.push(h('li.gap', { 'data-key': 'gap' + a.number }, `${span(start - last)} later`))
    const good = !a.error
    steps.push(step(good ? 'ok' : 'bad', good ? 'done' : 'bad', a.started_at, `Attempt ${a.number}`,
      [h('span.result', {}, good ? `delivered, HTTP ${a.status_code}` : because(a.error, a.status_code)), h('span.took', {}, bar(a.duration_ms / longest), ms(a.duration_ms))], 'a' + a.number))
    last = start + a.duration_ms
    before = a.number
  }
  const out = outlook(event, endpoint)
  const kind = { delivered: ['ok', 'done'], dead_letter: ['bad', 'bad'], in_flight: ['busy', 'busy'] }[event.state] ?? ['off', 'wait']
  const when = event.state === 'dead_letter' ? event.dead_at : event.state === 'delivered' ? event.delivered_at : out.at
  steps.push(h('li.gap', { 'data-key': 'last' }, event.state === 'delivered' || event.state === 'dead_letter' ? '' : out.at ? `in ${duration(until(out.at))}` : ''))
  steps.push(h('li.next', { 'data-key': 'next' }, h('time', { datetime: when }, when ? clock(when) : 'now'), h('div', {}, mark(...kind, h('b', {}, out.next)), out.why.map((w) => h('p', {}, w)))))
  return h('ol.timeline', {}, steps)
}

const step = (kind, sign, at, what, detail, key = 'accepted') => h('li.step', { 'data-key': key }, h('time', { datetime: at }, clock(at)), h('div', {}, mark(kind, sign, h('b', {}, what)), detail))

const bar = (part) => h('progress', { value: Math.max(0.01, part), max: 1, 'aria-hidden': 'true' })

function content(r) {
  return h('div.revealed', {},
    notice('warn', 'This was logged.'),
    facts(['Target', h('code', {}, r.target || '(the endpoint\'s url as it is)')]),
    h('h3', {}, 'Headers'), r.headers.length ? h('pre', { tabindex: '0', 'aria-label': 'Headers' }, r.headers.map((f) => `${f.name}: ${f.value}\n`).join('')) : h('p.faint', {}, 'none'),
    h('h3', {}, 'Body', r.body_encoding === 'base64' ? ' (bytes, as base64)' : ''),
    r.body === null ? h('p.faint', {}, 'It has left the spool: the event was delivered.') : r.body === '' ? h('p.faint', {}, 'empty') : h('pre', { tabindex: '0', 'aria-label': 'Body' }, r.body),
    r.answer ? [h('h3', {}, `Answer of the last failed attempt: HTTP ${r.answer.status_code}`), r.answer.location ? facts(['Location', h('code', {}, r.answer.location)]) : null,
      r.answer.body ? h('pre', { tabindex: '0', 'aria-label': 'Answer' }, r.answer.body) : h('p.faint', {}, 'no body was kept')] : null)
}
