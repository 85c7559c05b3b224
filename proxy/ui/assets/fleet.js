// The page of a fleet: all instances that report to one Postgres.
import { h } from './dom.js'
import { name } from './api.js'
import { Poll } from './live.js'
import { open } from './shell.js'
import { ago, count, duration, plural, since } from './format.js'
import { link, mark, notice, title } from './widgets.js'
import { endpointRows, endpointsTable, fleetEndpoint, fleetEndpoints } from './fleet-endpoints.js'
import { fleetInstances } from './fleet-instances.js'
import { fleetLetters } from './fleet-letters.js'

const ALERTS = {
  dead_letters_growing: 'Dead letters growing', queue_age: 'Queue too old', p95_over_threshold: 'p95 over threshold',
  p95_jump: 'p95 jumped', stuck_event: 'Stuck event',
}

open((ctx) => {
  const live = new Poll('fleet/', [['status', 4], ['breakers', 5], ['alerts', 10], ['endpoints', 10], ['instances', 10], ['dead-letters', 20], ['latency', 60]], ctx.redraw)
  return {
    name: 'Postern fleet', live,
    views: { '': overview, endpoints: fleetEndpoints, endpoint: fleetEndpoint, instances: fleetInstances, 'dead-letters': fleetLetters },
    nav: [['', 'Overview'], ['endpoints', 'Endpoints'], ['instances', 'Instances'], ['dead-letters', 'Dead letters']],
    parent: { endpoint: 'endpoints' },
    where: () => live.asOf.status ? h('span.instance', {}, `as of ${ago(live.asOf.status)}`) : null,
    banner() {
      if (live.state === 'offline') return notice('bad', `${live.error?.status ? '' : 'The page\'s server does not answer. '}${live.error?.status ? live.error.message : ''} What you see may be old. Asking again …`)
      if (live.state === 'locked') return notice('warn', 'The token is needed to show anything. Load the page again to be asked for it.')
      return null
    },
  }
})

function overview(ctx) {
  return {
    title: () => ctx.data.alerts?.firing ? `${plural(ctx.data.alerts.alerts.length, 'alert')}` : 'Overview',
    render() {
      if (!ctx.data.status) return [title('Overview'), h('p.empty', {}, 'Waiting for the first answer …')]
      return [title('Overview'), glance(ctx.data.status), alerts(ctx), breakers(ctx), slow(ctx), letters(ctx)]
    },
  }
}

function glance(st) {
  const figure = (key, label, value, note, kind) => h('div', { class: kind, 'data-figure': key }, h('dt', {}, label), h('dd', {}, h('b', {}, value), h('small', {}, note)))
  const { live, silent, stopped } = st.instances
  const lag = st.sync.lag_seconds
  return h('dl.glance', { 'aria-label': 'The fleet at a glance' },
    figure('live', 'Instances', count(live), silent ? link('instances?state=silent', `${count(silent)} silent`) : stopped ? `${count(stopped)} stopped` : 'all alive', silent ? 'warn' : live ? '' : 'bad'),
    figure('pending', 'Waiting', count(st.pending), 'never tried'),
    figure('in_flight', 'In flight', count(st.in_flight), 'running now'),
    figure('awaiting_retry', 'Failed', count(st.awaiting_retry), 'will be retried', st.awaiting_retry ? 'warn' : ''),
    figure('dead_letter', 'Dead letters', count(st.dead_letter), st.dead_letter ? link('dead-letters', 'see why') : 'none given up', st.dead_letter ? 'bad' : ''),
    figure('delivered', 'Delivered', count(st.delivered_last_hour), 'last hour'),
    figure('failed', 'Failed attempts', count(st.failed_last_hour), 'last hour'),
    figure('oldest', 'Oldest waiting', st.oldest_pending ? duration(since(st.oldest_pending)) : '–', st.oldest_pending ? 'since accepted' : 'nothing waits', st.oldest_pending && since(st.oldest_pending) > 30 * 60_000 ? 'warn' : ''),
    figure('lag', 'Behind', duration(lag * 1000), `${plural(st.sync.backlog_rows, 'row')} to report`, lag > 60 ? 'warn' : ''))
}

function alerts(ctx) {
  const all = ctx.data.alerts?.alerts
  const section = (...content) => h('section.attention', { 'aria-labelledby': 'alerts' }, h('h2', { id: 'alerts' }, 'Alerts', all?.length ? h('span.count', {}, all.length) : null), ...content)
  if (!all) return section(h('p.faint', {}, 'Looking …'))
  if (!all.length) return section(h('p', {}, mark('ok', 'done', `None fires. ${plural(ctx.data.alerts.live_instances, 'live instance')}.`)))
  return section(h('ul', {}, all.slice(0, 12).map((a) => h('li', { 'data-key': a.alert + a.endpoint_url },
    mark('bad', 'bad', h('b', {}, link('endpoint/' + name(a.endpoint_url), a.endpoint_url)), ` ${ALERTS[a.alert] ?? a.alert}: ${a.message}`, h('small', {}, ' ', a.action))))),
    all.length > 12 ? h('p.faint', {}, `and ${all.length - 12} more: postern fleet alerts`) : null)
}

// byEndpoint groups the rows of breakers.
export function byEndpoint(rows) {
  const groups = new Map()
  for (const b of rows ?? []) {
    if (!groups.has(b.endpoint_url)) groups.set(b.endpoint_url, [])
    groups.get(b.endpoint_url).push(b)
  }
  return groups
}

function breakers(ctx) {
  const groups = [...byEndpoint(ctx.data.breakers?.breakers)]
  if (!groups.length) return null
  const of = (url) => ctx.data.endpoints?.endpoints.find((e) => e.endpoint_url === url)?.instances
  const state = (list) => ['open', 'half_open'].map((s) => [list.filter((b) => b.state === s).length, s.replace('_', ' ')]).concat([[list.filter((b) => b.paused).length, 'paused']])
    .filter(([n]) => n).map(([n, s]) => `${s} on ${count(n)}${of(list[0].endpoint_url) ? ` of ${count(of(list[0].endpoint_url))}` : ''}`).join(', ')
  return h('section.attention', { 'aria-labelledby': 'breakers' }, h('h2', { id: 'breakers' }, 'Held back', h('span.count', {}, groups.length)),
    h('ul', {}, groups.slice(0, 12).map(([url, list]) => h('li', { 'data-key': url }, mark(list.some((b) => b.state === 'open') ? 'bad' : 'warn', list.some((b) => b.state === 'open') ? 'bad' : 'warn',
      h('b', {}, link('endpoint/' + name(url), url)), ` ${state(list)} instances: `, list.slice(0, 3).map((b, i) => [i ? ', ' : '', link('instances?find=' + b.instance_id, h('code', {}, b.instance_id.slice(-12)))]), list.length > 3 ? ` and ${count(list.length - 3)} more` : '')))),
    groups.length > 12 ? h('p', {}, link('endpoints?show=held', `all ${groups.length} endpoints`)) : null)
}

function slow(ctx) {
  const rows = endpointRows(ctx).filter((e) => e.slow || e.series?.trend.state === 'slowing').sort((a, b) => (b.p95_ms ?? 0) - (a.p95_ms ?? 0))
  return h('section', { 'aria-labelledby': 'slow' }, h('h2', { id: 'slow' }, 'Slow, or getting slower', h('span.count', {}, rows.length)),
    rows.length ? endpointsTable(ctx, rows.slice(0, 10), 'Endpoints that are slow or get slower') : h('p.calm', {}, mark('ok', 'done', 'No endpoint has a p95 over 2 s, and none is slower than it was.')),
    rows.length > 10 ? h('p', {}, link('endpoints?show=slow', `all ${rows.length}`)) : null)
}

function letters(ctx) {
  const all = (ctx.data['dead-letters']?.endpoints ?? []).flatMap((a) => a.findings.map((f) => ({ ...f, url: a.endpoint_url })))
  if (!all.length) return null
  return h('section.attention', { 'aria-labelledby': 'findings' }, h('h2', { id: 'findings' }, 'Dead letters, 24 hours', h('span.count', {}, all.length)),
    h('ul', {}, all.slice(0, 8).map((f) => h('li', { 'data-key': f.url + f.pattern }, mark('warn', 'warn', h('b', {}, link('dead-letters?find=' + name(f.url), f.url)), ` ${f.message}`)))),
    all.length > 8 ? h('p', {}, link('dead-letters', `all ${all.length} findings`)) : null)
}
