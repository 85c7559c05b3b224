// Dead letters: grouped by what they have in common, with what to do; and a list to choose from.
import { h } from './dom.js'
import { get, name, query, send } from './api.js'
import { clock, count, plural } from './format.js'
import { patterns } from './findings.js'
import { endpointSelect, eventColumns } from './events.js'
import { confirm, facts, link, mark, notice, Refused, table, title } from './widgets.js'

const HOURS = [['24', '24 hours'], ['168', '7 days'], ['720', '30 days']]

export function lettersView(ctx, _, first) {
  let params = first, analysis = null, letters = null, next = null, failed = null, asked = 0
  const chosen = new Set()
  const load = async (cursor) => {
    const mine = ++asked
    try {
      const [a, page] = await Promise.all([
        cursor ? analysis : get('dead-letters/analysis' + query({ hours: params.hours ?? 24 })),
        get('dead-letters' + query({ endpoint: params.endpoint, error: params.error, limit: 100, cursor })),
      ])
      if (mine !== asked) return
      analysis = a
      letters = cursor ? [...letters, ...page.dead_letters] : page.dead_letters
      next = page.next_cursor
      failed = null
      const known = new Set(letters.map((l) => l.id))
      for (const id of chosen) if (!known.has(id)) chosen.delete(id)
    } catch (err) {
      if (mine === asked) failed = err
    }
    ctx.redraw()
  }
  load()
  let seen = ctx.data.status?.dead_letter
  const again = setInterval(() => {
    // Asked anew where something has changed, and not under somebody who is choosing.
    const now = ctx.data.status?.dead_letter
    if (!document.hidden && now !== seen && chosen.size === 0 && (letters ?? []).length <= 100) {
      seen = now
      load()
    }
  }, 2000)
  const change = (more) => ctx.go({ ...params, ...more })
  const choose = (ids, on) => {
    for (const id of ids) on ? chosen.add(id) : chosen.delete(id)
    ctx.redraw()
  }
  const act = async (what, filter, n) => {
    if (await bulk(what, filter, n)) {
      chosen.clear()
      seen = undefined
      load()
    }
  }
  return {
    title: () => 'Dead letters',
    stop: () => clearInterval(again),
    update(to) {
      params = to
      chosen.clear()
      letters = null // what was listed by another filter is not to be acted upon
      load()
    },
    render: () => [
      title('Dead letters', h('label', {}, 'Findings of the last ', h('select', { onchange: (e) => change({ hours: e.target.value }) }, HOURS.map(([v, t]) => h('option', { value: v, selected: (params.hours ?? '24') === v }, t))))),
      failed ? notice('bad', failed.message) : null,
      replays(ctx),
      analysis ? groups(analysis, params, act, change) : h('p.empty', {}, 'Looking …'),
      list(ctx, { params, letters, next, chosen, choose, act, change, more: () => load(next) }),
    ],
  }
}

function groups(analysis, params, act, change) {
  if (!analysis.endpoints.length) return h('p.calm', {}, mark('ok', 'done', `Nothing was given up in the last ${plural(analysis.hours, 'hour')}.`))
  return h('section', { 'aria-labelledby': 'groups' }, h('h2', { id: 'groups' }, 'What they have in common'),
    analysis.endpoints.map((a) => h('article.finding', { 'data-key': a.endpoint },
      h('header', {}, h('h3', {}, link('endpoint/' + name(a.endpoint), a.endpoint)), h('span.count', {}, plural(a.dead_count, 'dead letter')),
        h('div.buttons', {}, h('button', { type: 'button', onclick: () => change({ endpoint: a.endpoint }) }, 'List'),
          h('button.primary', { type: 'button', onclick: () => act('replay', { endpoint: a.endpoint, since: analysis.since }, a.dead_count) }, 'Replay …'),
          h('button.danger', { type: 'button', onclick: () => act('purge', { endpoint: a.endpoint, since: analysis.since }, a.dead_count) }, 'Purge …'))),
      facts(['Mostly', a.primary_error || '–'], ['First and last', `${clock(a.first_dead)} – ${clock(a.last_dead)}`], ['Attempts each', a.avg_attempts]),
      a.findings.length
        ? patterns(a.findings)
        : h('p.faint', {}, 'No known pattern. Look at single events below.'))))
}

function list(ctx, { params, letters, next, chosen, choose, act, change, more }) {
  const all = letters?.length > 0 && letters.every((l) => chosen.has(l.id))
  const columns = [
    {
      name: 'choose', title: 'Choose', class: 'choose',
      head: () => h('input', { type: 'checkbox', 'aria-label': 'Choose all that are listed', checked: all, indeterminate: !all && chosen.size > 0, onchange: (e) => choose(letters.map((l) => l.id), e.target.checked) }),
      cell: (e) => h('input', { type: 'checkbox', 'aria-label': `Choose ${e.id}`, checked: chosen.has(e.id), onchange: (ev) => choose([e.id], ev.target.checked) }),
    },
    ...eventColumns().filter((c) => c.name !== 'state' && c.name !== 'accepted'),
    { name: 'reason', title: 'Reason', cell: (e) => e.dead_reason },
    { name: 'dead', title: 'Died', num: true, cell: (e) => clock(e.dead_at) },
  ]
  const ids = [...chosen]
  return h('section', { 'aria-labelledby': 'letters' },
    h('h2', { id: 'letters' }, 'One by one'),
    h('div.bar', {},
      h('label', {}, 'Endpoint ', endpointSelect(ctx, params.endpoint, (endpoint) => change({ endpoint }))),
      h('label', {}, 'Error ', h('input', { type: 'text', name: 'error', spellcheck: 'false', placeholder: 'http_503', value: params.error ?? '', onchange: (e) => change({ error: e.target.value.trim() }) })),
      h('div.buttons', {},
        h('button.primary', { type: 'button', disabled: !ids.length, onclick: () => act('replay', { ids }, ids.length) }, `Replay chosen (${ids.length})`),
        h('button.danger', { type: 'button', disabled: !ids.length, onclick: () => act('purge', { ids }, ids.length) }, 'Purge chosen'))),
    table({ caption: 'Dead letters, the latest first', columns, rows: letters ?? [], key: (e) => e.id, empty: letters ? 'No dead letter matches.' : 'Looking …' }),
    letters && next ? h('div.buttons', {}, h('button', { type: 'button', onclick: more }, 'Show older ones')) : null)
}

// bulk replays or purges what a filter selects, after a dry run that says how much that is. The dry run's bounds go
// along, so that nothing is touched that died after it.
function bulk(what, filter, n) {
  const replay = what === 'replay', where = filter.endpoint ? ` of ${filter.endpoint}` : ''
  const rate = replay ? h('input', { id: 'rate', type: 'text', inputmode: 'decimal', spellcheck: 'false', placeholder: 'all at once', autocomplete: 'off' }) : null
  const body = (more) => {
    const out = { ...filter, ...more }
    const text = rate?.value.trim().replace(',', '.')
    if (text) out.rate = /^\d+(\.\d+)?$/.test(text) ? Number(text) : text
    return out
  }
  let counted = null
  const check = h('p.dry', { role: 'status' }, 'Counting …')
  const dry = async () => {
    try {
      counted = await send('POST', 'dead-letters/' + what, body({ dry_run: true }))
      check.textContent = `Dry run: ${plural(counted.matched, 'dead letter')} would be ${replay ? 'replayed' : 'purged'}. Nothing has been changed.`
    } catch (err) {
      counted = null
      check.textContent = err.message
    }
  }
  dry()
  return confirm({
    heading: `${replay ? 'Replay' : 'Purge'} ${plural(n, 'dead letter')}${where}?`,
    text: replay ? 'They become due again with their old IDs, a new budget of attempts and a new TTL.' : 'They are dropped for good: they are never sent, and cannot be brought back.',
    fields: [
      rate ? h('p', {}, h('label', { for: 'rate' }, 'Rate, in events per second '), rate, h('small', {}, ' such as 2.5 or 100/1m')) : null,
      check, h('button', { type: 'button', onclick: dry }, 'Count again (dry run)'),
    ],
    button: replay ? 'Replay' : 'Purge', danger: !replay,
    act: async () => {
      if (!counted) throw new Refused('Nothing was counted yet: see above, then try again.')
      const bounds = filter.ids ? {} : { ...(counted.since && { since: counted.since }), ...(counted.until && { until: counted.until }) }
      const r = await send('POST', 'dead-letters/' + what, body(bounds))
      if (r.started) return `Started: ${count(r.matched)} at ${rate.value.trim()} a second. The page shows how far it is.`
      return `${count(replay ? r.replayed : r.purged)} of ${plural(r.matched, 'dead letter')} ${replay ? 'are due again' : 'are gone'}.`
    },
  })
}

function replays(ctx) {
  const list = (ctx.data.replays?.replays ?? []).filter((r) => r.state === 'running' || Date.now() - Date.parse(r.finished_at) < 600_000)
  if (!list.length) return null
  return h('section', { 'aria-labelledby': 'replays' }, h('h2', { id: 'replays' }, 'Paced replays'), h('ul.replays', {}, list.map((r) => h('li', { 'data-key': r.id },
    r.state === 'running' ? mark('busy', 'busy', 'running') : r.state === 'done' ? mark('ok', 'done', 'done') : mark('warn', 'warn', r.state),
    h('progress', { max: Math.max(1, r.matched), value: r.replayed + r.skipped, 'aria-label': `Replay ${r.id}` }),
    h('span', {}, `${count(r.replayed)} of ${count(r.matched)} at ${r.rate} a second${r.skipped ? `, ${count(r.skipped)} were no dead letters any more` : ''}${r.error ? `: ${r.error}` : ''}`),
    r.state === 'running' ? h('button', { type: 'button', onclick: () => stop(r) }, 'Stop') : null))))
}

const stop = (r) => confirm({
  heading: 'Stop this replay?', text: `What it has not replayed stays a dead letter: ${count(r.matched - r.replayed - r.skipped)} now.`, button: 'Stop it',
  act: async () => {
    await send('DELETE', 'dead-letters/replays/' + name(r.id))
    return 'It stops.'
  },
})
