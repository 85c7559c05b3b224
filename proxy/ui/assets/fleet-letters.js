// Dead letters of the fleet: per endpoint what they have in common, and what to do.
import { h } from './dom.js'
import { name } from './api.js'
import { clock, count, plural } from './format.js'
import { PATTERNS, patterns } from './findings.js'
import { facts, link, mark, pager, title } from './widgets.js'

const PER = 20

export function fleetLetters(ctx, _, first) {
  let params = first, page = 0
  return {
    title: () => 'Dead letters',
    update(to) {
      params = to
      page = 0
    },
    render() {
      const all = ctx.data['dead-letters']?.endpoints
      if (!all) return [title('Dead letters'), h('p.empty', {}, 'Looking …')]
      const find = (params.find ?? '').toLowerCase()
      const rows = all.filter((a) => `${a.endpoint_url} ${a.endpoint}`.toLowerCase().includes(find) && (!params.pattern || a.findings.some((f) => f.pattern === params.pattern)))
      return [
        title('Dead letters'),
        h('p.faint', {}, `Given up in the last 24 hours: ${count(all.reduce((n, a) => n + a.dead_count, 0))}, of ${plural(all.length, 'endpoint')}. Replay them on the instances that have them: postern dead-letters replay.`),
        h('div.bar', {},
          h('label', {}, 'Finding ', h('select', { onchange: (e) => ctx.go({ ...params, pattern: e.target.value }) }, h('option', { value: '' }, 'any'), Object.entries(PATTERNS).map(([v, text]) => h('option', { value: v, selected: params.pattern === v }, text)))),
          h('label', {}, 'Find ', h('input', { type: 'search', value: params.find ?? '', oninput: (e) => ctx.go({ ...params, find: e.target.value }) })),
          h('span.faint', {}, `${count(rows.length)} of ${plural(all.length, 'endpoint')}`)),
        rows.length ? rows.slice(page * PER, (page + 1) * PER).map(analysis) : h('p.calm', {}, all.length ? 'No endpoint matches.' : mark('ok', 'done', 'Nothing was given up.')),
        pager(rows.length, page, PER, (to) => {
          page = to
          ctx.redraw()
        }),
      ]
    },
  }
}

const analysis = (a) => h('article.finding', { 'data-key': a.endpoint_url + a.endpoint },
  h('header', {}, h('h2', {}, link('endpoint/' + name(a.endpoint_url), a.endpoint_url)), h('span.count', {}, plural(a.dead_count, 'dead letter'))),
  facts(['Known as', a.endpoint === a.endpoint_url ? null : a.endpoint], ['Mostly', a.primary_error || '–'], ['First and last', `${clock(a.first_dead)} – ${clock(a.last_dead)}`], ['Attempts each', a.avg_attempts]),
  a.findings.length ? patterns(a.findings) : h('p.faint', {}, 'No known pattern.'))

// findings is the part of one endpoint's page.
export function findings(ctx, match) {
  const list = (ctx.data['dead-letters']?.endpoints ?? []).filter(match)
  return list.length ? h('section', { 'aria-labelledby': 'letters' }, h('h2', { id: 'letters' }, 'Dead letters, 24 hours'), list.map(analysis)) : null
}
