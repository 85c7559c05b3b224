// One endpoint: its state, its answer times, and what can be done to it.
import { h } from './dom.js'
import { get, name } from './api.js'
import { clock, count, ms, plural, ago } from './format.js'
import { latencyChart } from './chart.js'
import { act } from './actions.js'
import { heldBack, slowing } from './outlook.js'
import { facts, link, mark, notice, table, title } from './widgets.js'
import { limiterCell, stateCell } from './overview.js'

export function endpointView(ctx, which) {
  let latency = null, failed = null, over = false
  const load = async () => {
    try {
      latency = await get(`endpoints/${name(which)}/latency?hours=24`)
      failed = null
    } catch (err) {
      failed = err
    }
    if (!over) ctx.redraw()
  }
  load()
  const again = setInterval(() => { if (!document.hidden) load() }, 30_000)
  return {
    title: () => which,
    stop: () => {
      over = true
      clearInterval(again)
    },
    render() {
      const e = ctx.endpoint(which)
      if (!e) return [title(which), h('p.empty', {}, ctx.data.endpoints ? failed?.message ?? 'There is no such endpoint (any more).' : 'Waiting for the first answer …')]
      const held = heldBack(e)
      return [
        title(e.name, h('div.buttons', {},
          e.paused ? h('button.primary', { type: 'button', onclick: () => act(e, 'resume') }, 'Resume') : h('button', { type: 'button', onclick: () => act(e, 'pause') }, 'Pause'),
          h('button', { type: 'button', onclick: () => act(e, 'reset') }, 'Reset breaker'))),
        held ? notice(e.breaker.state === 'open' ? 'bad' : 'warn', held) : null,
        e.share_full ? notice('bad', 'Its share of the spool is full: new events for it get 503 until events that wait leave, or dead letters are replayed or purged.') : null,
        latency?.trend.state === 'slowing' ? notice('warn', mark('warn', 'warn', 'This endpoint is ' + slowing(latency.trend) + '.')) : null,
        e.tls_error ? notice('warn', `Its TLS files as they are now are not in force: ${e.tls_error}`) : null,
        facts(
          ['URL', e.url], ['Breaker', stateCell(e)], ['Opened', e.breaker.opened_at ? `${clock(e.breaker.opened_at)} (${ago(e.breaker.opened_at)})` : null],
          ['Limiter', limiterCell(e)], ['At once', `${e.queue.in_flight} of ${e.limiter.concurrency} attempts` + (e.limiter.concurrency < e.limiter.max_concurrency ? ` (${e.limiter.max_concurrency} when all is well)` : '')],
          ['Queue', `${count(e.queue.pending)} never tried, ${count(e.queue.awaiting_retry)} failed, ${count(e.queue.in_flight)} in flight`],
          ['Dead letters', e.queue.dead_letter ? link('dead-letters?endpoint=' + name(e.name), plural(e.queue.dead_letter, 'dead letter')) : 'none'],
          ['Events', link('events?endpoint=' + name(e.name), 'list them')],
          ['Known from', e.configured ? 'the configuration' : e.name.includes('://') ? 'ad hoc: a target that an application named' : 'no configuration any more: its events wait until it returns']),
        times(ctx, e, latency),
      ]
    },
  }
}

function times(ctx, e, latency) {
  const label = `Answer times of ${e.name} over 24 hours`
  return h('section', { 'aria-labelledby': 'times' },
    h('h2', { id: 'times' }, 'Answer times, 24 hours'),
    h('dl.glance.small', {}, ['p50', 'p95', 'p99'].map((p) => h('div', {}, h('dt', {}, p), h('dd', {}, h('b', {}, ms(e[p + '_ms']))))), h('div', {}, h('dt', {}, 'Samples'), h('dd', {}, h('b', {}, count(e.sample_count))))),
    !latency ? null : !latency.buckets.length ? h('p.empty', {}, 'No samples in the last 24 hours: attempts that got an answer, or ran into the timeout, are samples.') : [
      h('figure', {}, latencyChart(latency, latency.bucket_seconds * 1000, ctx.width() - 30, label),
        h('figcaption', {}, h('span.key', {}, h('i.line95', { 'aria-hidden': 'true' }), 'p95', h('i.area50', { 'aria-hidden': 'true' }), 'p50', h('i.usual', { 'aria-hidden': 'true' }), 'usual p95, without the last hour'), h('span', {}, 'square-root scale'))),
      h('details', {}, h('summary', {}, 'The same as a table'), table({
        caption: label, key: (b) => b.start, rows: latency.buckets.toReversed(), empty: '',
        columns: [
          { name: 'start', title: 'Half hour from', rowHead: true, cell: (b) => clock(b.start, false) },
          { name: 'p50', title: 'p50', num: true, cell: (b) => ms(b.p50_ms) }, { name: 'p95', title: 'p95', num: true, cell: (b) => ms(b.p95_ms) },
          { name: 'n', title: 'Samples', num: true, cell: (b) => count(b.sample_count) },
        ],
      })),
    ])
}
