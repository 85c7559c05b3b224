// Endpoints over the whole fleet: a table, and one of them.
import { h } from './dom.js'
import { name } from './api.js'
import { ago, clock, count, ms, plural, since, duration } from './format.js'
import { latencyChart, spark } from './chart.js'
import { slowing } from './outlook.js'
import { findings } from './fleet-letters.js'
import { trendText } from './overview.js'
import { breakerMark, facts, link, mark, nextSort, notice, pager, sorted, table, title } from './widgets.js'

const PER = 50
const SLOW = 2000 // milliseconds: what the view slow_endpoints goes by
const RANK = { open: 3, half_open: 2, closed: 0 }

// endpointRows joins health, hours and breakers by endpoint_url.
export function endpointRows(ctx) {
  const series = new Map((ctx.data.latency?.endpoints ?? []).map((s) => [s.endpoint_url, { hours: 24, ...s }]))
  const held = new Map()
  for (const b of ctx.data.breakers?.breakers ?? []) held.set(b.endpoint_url, [...(held.get(b.endpoint_url) ?? []), b])
  return (ctx.data.endpoints?.endpoints ?? []).map((e) => {
    const row = { ...e, series: series.get(e.endpoint_url), held: held.get(e.endpoint_url) ?? [], slow: e.p95_ms > SLOW && e.sample_count >= 20 }
    row.rank = RANK[e.state] * 10 + (e.paused ? 15 : 0) + (row.series?.trend.state === 'slowing' ? 5 : 0) + (row.slow ? 4 : 0)
    return row
  })
}

const columns = (ctx) => [
  { name: 'name', title: 'Endpoint', rowHead: true, class: 'name', sort: (e) => e.endpoint_url, cell: (e) => link('endpoint/' + name(e.endpoint_url), e.endpoint_url) },
  { name: 'rank', title: 'State', sort: (e) => e.rank, cell: (e) => [breakerMark(e.state), e.paused ? mark('warn', 'warn', 'paused') : null, e.held.length ? h('small', {}, `on ${count(e.held.length)} of ${plural(e.instances, 'instance')}`) : null] },
  { name: 'instances', title: 'Instances', num: true, sort: (e) => e.instances, cell: (e) => count(e.instances) },
  ...['p50', 'p95', 'p99'].map((p) => ({ name: p, title: p, num: true, sort: (e) => e[p + '_ms'], cell: (e) => ms(e[p + '_ms']) })),
  { name: 'samples', title: 'Samples', num: true, sort: (e) => e.sample_count, cell: (e) => count(e.sample_count) },
  { name: 'day', title: 'p95, 24 h', class: 'day', cell: (e) => h('div.trend', {}, spark(e.series, (ctx.data.latency?.bucket_seconds ?? 3600) * 1000), e.slow && e.series?.trend.state !== 'slowing' ? mark('warn', 'warn', 'slow') : trendText(e.series)) },
]

export const endpointsTable = (ctx, rows, caption, more = {}) => table({
  caption, columns: columns(ctx), rows, key: (e) => e.endpoint_url, rowClass: (e) => e.state === 'open' ? 'bad' : e.rank > 0 ? 'warn' : '', empty: 'No endpoint matches.', onsort: () => {}, ...more,
})

const SHOW = {
  '': ['all', () => true], held: ['breaker open, half open, or paused', (e) => e.state !== 'closed' || e.paused],
  slow: ['slow, or getting slower', (e) => e.slow || e.series?.trend.state === 'slowing'],
}

export function fleetEndpoints(ctx, _, first) {
  let params = first
  const state = { sort: { by: 'rank', down: true }, page: 0 }
  const set = (change) => {
    Object.assign(state, change)
    ctx.redraw()
  }
  return {
    title: () => 'Endpoints',
    update(to) {
      params = to
      state.page = 0
    },
    render() {
      const all = endpointRows(ctx), find = (params.find ?? '').toLowerCase()
      const wanted = all.filter((e) => e.endpoint_url.toLowerCase().includes(find) && (SHOW[params.show ?? ''] ?? SHOW['']) [1](e))
      const rows = sorted(sorted(wanted, columns(ctx), { by: 'name' }), columns(ctx), state.sort)
      const page = Math.min(state.page, Math.max(0, Math.ceil(rows.length / PER) - 1))
      return [
        title('Endpoints'),
        h('div.bar', {},
          h('label', {}, 'Show ', h('select', { onchange: (e) => ctx.go({ ...params, show: e.target.value }) }, Object.entries(SHOW).map(([v, [text]]) => h('option', { value: v, selected: (params.show ?? '') === v }, text)))),
          h('label', {}, 'Find ', h('input', { type: 'search', value: params.find ?? '', oninput: (e) => ctx.go({ ...params, find: e.target.value }) })),
          h('span.faint', {}, `${count(rows.length)} of ${plural(all.length, 'endpoint')}`)),
        ctx.data.endpoints ? endpointsTable(ctx, rows.slice(page * PER, (page + 1) * PER), 'Endpoints over the whole fleet', { sort: state.sort, onsort: (c) => set({ sort: nextSort(state.sort, c) }) }) : h('p.empty', {}, 'Looking …'),
        pager(rows.length, page, PER, (page) => set({ page })),
      ]
    },
  }
}

export function fleetEndpoint(ctx, url) {
  return {
    title: () => url,
    render() {
      const e = endpointRows(ctx).find((row) => row.endpoint_url === url)
      if (!e) return [title(url), h('p.empty', {}, ctx.data.endpoints ? 'No instance has reported this endpoint.' : 'Looking …')]
      const alerts = (ctx.data.alerts?.alerts ?? []).filter((a) => a.endpoint_url === url)
      return [
        title(url),
        alerts.map((a) => notice('bad', h('b', {}, a.message), ' ', a.action)),
        e.series?.trend.state === 'slowing' ? notice('warn', mark('warn', 'warn', `This endpoint is ${slowing(e.series.trend)}.`)) : null,
        facts(['Worst state', breakerMark(e.state)], ['Instances', count(e.instances)], ['Held back on', e.held.length ? plural(e.held.length, 'instance') : 'none'],
          ['Last success', e.last_success_at ? `${clock(e.last_success_at)} (${ago(e.last_success_at)})` : '–'], ['Last failure', e.last_failure_at ? `${clock(e.last_failure_at)} (${ago(e.last_failure_at)})` : '–'],
          ['Samples', `${count(e.sample_count)} in 24 hours`], ['p50, p95, p99', `${ms(e.p50_ms)}, ${ms(e.p95_ms)}, ${ms(e.p99_ms)}`]),
        times(ctx, e), where(ctx, e), findings(ctx, (a) => a.endpoint_url === url),
      ]
    },
  }
}

function times(ctx, e) {
  if (!e.series) return null
  const step = ctx.data.latency.bucket_seconds * 1000
  return h('section', { 'aria-labelledby': 'times' }, h('h2', { id: 'times' }, 'Answer times, 24 hours'),
    h('figure', {}, latencyChart(e.series, step, ctx.width() - 30, `Answer times of ${e.endpoint_url}`),
      h('figcaption', {}, h('span.key', {}, h('i.line95', { 'aria-hidden': 'true' }), 'p95', h('i.area50', { 'aria-hidden': 'true' }), 'p50', h('i.usual', { 'aria-hidden': 'true' }), 'usual p95, without the last two hours'), h('span', {}, 'all instances, square-root scale'))),
    h('details', {}, h('summary', {}, 'The same as a table'), table({
      caption: 'Percentiles by the hour', key: (b) => b.start, rows: e.series.buckets.toReversed(), empty: '',
      columns: [
        { name: 'start', title: 'Hour from', rowHead: true, cell: (b) => clock(b.start, false) }, { name: 'p50', title: 'p50', num: true, cell: (b) => ms(b.p50_ms) },
        { name: 'p95', title: 'p95', num: true, cell: (b) => ms(b.p95_ms) }, { name: 'n', title: 'Samples', num: true, cell: (b) => count(b.sample_count) },
      ],
    })))
}

function where(ctx, e) {
  if (!e.held.length) return null
  return h('section', { 'aria-labelledby': 'where' }, h('h2', { id: 'where' }, 'Held back on', h('span.count', {}, e.held.length)), table({
    caption: 'Instances on which the endpoint is held back', rows: e.held.slice(0, 50), key: (b) => b.instance_id + b.endpoint_name, empty: '',
    columns: [
      { name: 'id', title: 'Instance', rowHead: true, class: 'name', cell: (b) => link('instances?find=' + b.instance_id, h('code', {}, b.instance_id)) },
      { name: 'name', title: 'Known there as', cell: (b) => b.endpoint_name },
      { name: 'state', title: 'Breaker', cell: (b) => [breakerMark(b.state), b.paused ? mark('warn', 'warn', 'paused') : null] },
      { name: 'failures', title: 'Failures', num: true, cell: (b) => count(b.consecutive_failures) },
      { name: 'since', title: 'Open for', num: true, cell: (b) => b.opened_at ? duration(since(b.opened_at)) : '–' },
    ],
  }), e.held.length > 50 ? h('p.faint', {}, `and ${e.held.length - 50} more`) : null)
}
