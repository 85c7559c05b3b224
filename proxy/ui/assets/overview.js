// The pipeline at a glance, what needs attention, and the endpoints.
import { h } from './dom.js'
import { ago, bytes, count, ms, plural, since, until, duration, windowName } from './format.js'
import { activityChart, meter, spark } from './chart.js'
import { breakerMark, link, mark, nextSort, pager, say, sorted, table, title } from './widgets.js'
import { name } from './api.js'
import { opensUntil, troubles } from './outlook.js'

const PER = 50

export function overview(ctx) {
  const state = { sort: { by: 'trouble', down: true }, page: 0, filter: '' }
  const set = (change) => {
    Object.assign(state, change)
    ctx.redraw()
  }
  return {
    title: () => {
      const n = attention(ctx).length
      return n ? `${n} to look at` : 'Overview'
    },
    render() {
      tell(ctx, state)
      if (!ctx.data.status) return [title('Overview'), h('p.empty', {}, 'Waiting for the first answer …')]
      return [
        title('Overview'),
        glance(ctx.data.status, ctx.data.activity),
        attentionList(ctx),
        throughput(ctx),
        endpoints(ctx, state, set),
      ]
    },
  }
}

function glance(st, activity) {
  const figure = (key, label, value, note, kind) => h('div', { class: kind, 'data-figure': key }, h('dt', {}, label), h('dd', {}, h('b', {}, value), h('small', {}, note)))
  const sync = syncState(st.sync)
  return h('dl.glance', { 'aria-label': 'The pipeline at a glance' },
    figure('pending', 'Waiting', count(st.pending), 'never tried'),
    figure('in_flight', 'In flight', count(st.in_flight), 'running now'),
    figure('awaiting_retry', 'Failed', count(st.awaiting_retry), 'will be retried', st.awaiting_retry ? 'warn' : ''),
    figure('dead_letter', 'Dead letters', count(st.dead_letter), st.dead_letter ? link('dead-letters', 'see why') : 'none given up', st.dead_letter ? 'bad' : ''),
    figure('per_minute', 'Delivered / min', activity ? rate(activity.delivered_per_minute) : '–', `${count(st.delivered_last_hour)} in an hour`),
    figure('oldest', 'Oldest waiting', st.oldest_pending ? duration(since(st.oldest_pending)) : '–', st.oldest_pending ? 'since accepted' : 'nothing waits', st.oldest_pending && since(st.oldest_pending) > 30 * 60_000 ? 'warn' : ''),
    figure('average', 'Avg. delivery', ms(st.avg_delivery_ms_last_hour), 'last hour'),
    figure('spool', 'Spool', bytes(st.spool_bytes), `of ${bytes(st.spool_max_bytes)}`),
    figure('sync', 'Sync', sync.value, sync.note, sync.kind))
}

const rate = (n) => n < 10 && n % 1 ? n.toFixed(1) : count(Math.round(n))

function syncState(sync) {
  if (!sync?.enabled) return { value: 'off', note: 'no Postgres' }
  if (!sync.connected) return { value: 'failing', note: sync.last_success ? `last worked ${ago(sync.last_success)}` : 'never worked yet', kind: 'warn' }
  return { value: duration(sync.lag_seconds * 1000), note: `behind; ${count(sync.rows_total)} rows sent`, kind: sync.lag_seconds > 60 ? 'warn' : '' }
}

// attention is what a person should look at, the worst first: [rank, kind, content].
function attention(ctx) {
  const out = []
  for (const e of ctx.data.endpoints?.endpoints ?? []) {
    const all = troubles(e, ctx.latency(e.name)).filter(([rank]) => rank !== 30 && rank !== 40)
    if (all.length) out.push([all[0][0], all[0][1], [h('b', {}, link('endpoint/' + name(e.name), e.name)), ' ', all.map((t) => t[2]).join('; ')], e.name])
  }
  const st = ctx.data.status
  for (const reason of st?.reasons ?? []) out.push([110, 'bad', [h('b', {}, 'Not ready:'), ' ', reason], reason])
  if (st?.sync?.enabled && !st.sync.connected) out.push([55, 'warn', [h('b', {}, 'Sync'), ' ', st.sync.error ?? 'Postgres does not answer.', ' Deliveries go on.'], 'sync'])
  if (st?.dead_letter) out.push([30, 'bad', [h('b', {}, link('dead-letters', plural(st.dead_letter, 'dead letter'))), st.dead_letter === 1 ? ' waits for somebody to replay or purge it' : ' wait for somebody to replay or purge them'], 'dead'])
  return out.sort((a, b) => b[0] - a[0])
}

// tell has a screen reader say what has come to need attention since the page was opened, and nothing else.
function tell(ctx, state) {
  if (!ctx.data.endpoints || !ctx.data.latency) return
  const all = attention(ctx).filter(([rank]) => rank >= 50).map(([, , , key]) => key)
  const fresh = all.filter((key) => !(state.known ?? all).includes(key))
  state.known = all
  if (fresh.length) say(`Needs attention now: ${fresh.join(', ')}`)
}

function attentionList(ctx) {
  const all = attention(ctx), shown = all.slice(0, 8)
  return h('section.attention', { 'aria-labelledby': 'attention' }, h('h2', { id: 'attention' }, 'Needs attention', all.length ? h('span.count', {}, all.length) : null),
    all.length
      ? [h('ul', {}, shown.map(([, kind, content, key]) => h('li', { 'data-key': key }, mark(kind, kind, content)))), all.length > shown.length ? h('p.faint', {}, `and ${all.length - shown.length} more in the table below`) : null]
      : h('p', {}, mark('ok', 'done', 'Nothing: no breaker is open, nothing slows down, no dead letters, and events are taken.')))
}

function throughput(ctx) {
  const minutes = ctx.data.activity?.minutes
  const total = (field) => minutes?.reduce((n, m) => n + m[field], 0) ?? 0
  return h('section', { 'aria-labelledby': 'hour' },
    h('h2', { id: 'hour' }, 'The last hour'),
    h('figure', {}, activityChart(minutes, ctx.width() - 30),
      h('figcaption', {}, h('span', {}, '60 minutes ago'), h('span.key', {}, h('i.up', { 'aria-hidden': 'true' }), `delivered ${count(total('delivered'))}`, h('i.down', { 'aria-hidden': 'true' }), `failed attempts ${count(total('failed'))}`), h('span', {}, 'now'))))
}

function endpoints(ctx, state, set) {
  const step = (ctx.data.latency?.bucket_seconds ?? 1800) * 1000
  const all = (ctx.data.endpoints?.endpoints ?? []).map((e) => {
    const latency = ctx.latency(e.name)
    return { ...e, latency, troubles: troubles(e, latency) }
  })
  const wanted = all.filter((e) => e.name.toLowerCase().includes(state.filter.toLowerCase()))
  const columns = endpointColumns(step)
  const rows = sorted(sorted(wanted, columns, { by: 'name' }), columns, state.sort)
  const page = Math.min(state.page, Math.max(0, Math.ceil(rows.length / PER) - 1))
  return h('section', { 'aria-labelledby': 'endpoints' },
    h('div.bar', {}, h('h2', { id: 'endpoints' }, 'Endpoints', h('span.count', {}, all.length)),
      all.length > 10 ? h('label.filter', {}, 'Filter ', h('input', { type: 'search', oninput: (e) => set({ filter: e.target.value, page: 0 }) })) : null),
    table({
      caption: 'Endpoints with their breaker, limits, queue and answer times', columns, rows: rows.slice(page * PER, (page + 1) * PER), key: (e) => e.name,
      sort: state.sort, onsort: (c) => set({ sort: nextSort(state.sort, c) }), rowClass: (e) => e.troubles[0]?.[0] >= 50 ? e.troubles[0][1] : '',
      empty: all.length ? 'No endpoint has that in its name.' : 'No endpoint yet: the first event makes one, or the configuration names it.',
    }),
    pager(rows.length, page, PER, (page) => set({ page })))
}

const endpointColumns = (step) => [
  { name: 'name', title: 'Endpoint', rowHead: true, class: 'name', sort: (e) => e.name, cell: (e) => [link('endpoint/' + name(e.name), e.name), e.url !== e.name ? h('small', {}, e.url) : e.configured ? null : h('small', {}, 'ad hoc')] },
  { name: 'trouble', title: 'State', num: false, sort: (e) => e.troubles[0]?.[0] ?? 0, cell: (e) => stateCell(e) },
  { name: 'limiter', title: 'Limiter', cell: (e) => limiterCell(e) },
  { name: 'queue', title: 'Queue', num: true, sort: (e) => e.queue_depth, cell: (e) => [count(e.queue_depth), e.queue.awaiting_retry ? h('small', {}, `${count(e.queue.awaiting_retry)} failed`) : null] },
  { name: 'dead', title: 'Dead', num: true, sort: (e) => e.queue.dead_letter, cell: (e) => e.queue.dead_letter ? link('dead-letters?endpoint=' + name(e.name), count(e.queue.dead_letter)) : '0' },
  ...['p50', 'p95', 'p99'].map((p) => ({ name: p, title: p, num: true, sort: (e) => e[p + '_ms'], cell: (e) => ms(e[p + '_ms']) })),
  { name: 'day', title: 'p95, 24 h', class: 'day', cell: (e) => h('div.trend', {}, spark(e.latency, step), trendText(e.latency)) },
]

export function stateCell(e) {
  const notes = []
  if (e.breaker.state === 'open') notes.push(opensUntil(e.breaker) > Date.now() ? `next try in ${duration(opensUntil(e.breaker) - Date.now())}` : 'next try now')
  else if (e.breaker.consecutive_failures) notes.push(`${e.breaker.consecutive_failures} of ${e.breaker.failure_threshold} failures`)
  return [breakerMark(e.breaker.state), e.share_full ? mark('bad', 'bad', 'share full') : null, e.paused ? mark('warn', 'warn', 'paused') : null, notes.length ? h('small', {}, notes.join(', ')) : null]
}

export function limiterCell(e) {
  const l = e.limiter, wait = l.next_allowed_at ? until(l.next_allowed_at) : 0
  const throttled = l.throttled_until && until(l.throttled_until) > 0
  return [
    l.limits.map((x) => h('div.limit', {}, meter(x.used, x.limit), h('span', {}, `${count(x.used)}/${count(x.limit)}`), h('small', {}, windowName(x.window_seconds)))),
    l.limits.length || throttled ? null : h('span.faint', {}, 'none'),
    throttled ? mark('warn', 'warn', `429, next in ${duration(until(l.throttled_until))}`)
      : l.held_by === 'rate_limited' && wait > 0 ? h('small', {}, `next in ${wait < 1000 ? 'under 1 s' : duration(wait)}`) : null,
    l.concurrency < l.max_concurrency ? h('small', {}, `${l.concurrency} at once of ${l.max_concurrency}`) : null,
  ]
}

export function trendText(latency) {
  const t = latency?.trend
  if (!t || t.state === 'unknown') return null
  if (t.state === 'slowing') return mark('warn', 'warn', `${(t.recent_p95_ms / t.earlier_p95_ms).toFixed(1)}× slower`)
  if (t.state === 'faster') return h('small', {}, `${(t.earlier_p95_ms / t.recent_p95_ms).toFixed(1)}× faster`)
  return h('small', {}, 'steady')
}
