// Instances: grouped by state, version or a label, then one by one.
import { h } from './dom.js'
import { ago, bytes, clock, count, duration, plural, since } from './format.js'
import { mark, nextSort, pager, sorted, table, title } from './widgets.js'

const PER = 50
const STATES = { live: ['ok', 'ok', 'live'], silent: ['warn', 'warn', 'silent'], stopped: ['off', 'off', 'stopped'] }
const RANK = { silent: 2, live: 1, stopped: 0 }

export const stateOf = (i) => i.live ? 'live' : i.stopped_at ? 'stopped' : 'silent'

const COLUMNS = [
  { name: 'id', title: 'Instance', rowHead: true, class: 'name', sort: (i) => i.instance_id, cell: (i) => [h('code', {}, i.instance_id), h('small', {}, labelText(i.labels))] },
  { name: 'state', title: 'State', sort: (i) => RANK[stateOf(i)], cell: (i) => mark(...STATES[stateOf(i)]) },
  { name: 'heartbeat', title: 'Heartbeat', num: true, sort: (i) => -Date.parse(i.heartbeat_at), cell: (i) => ago(i.heartbeat_at) },
  { name: 'waiting', title: 'Waiting', num: true, sort: (i) => i.pending + i.awaiting_retry, cell: (i) => [count(i.pending + i.awaiting_retry), i.awaiting_retry ? h('small', {}, `${count(i.awaiting_retry)} failed`) : null] },
  { name: 'dead', title: 'Dead', num: true, sort: (i) => i.dead_letter, cell: (i) => count(i.dead_letter) },
  { name: 'oldest', title: 'Oldest', num: true, sort: (i) => i.oldest_pending ? since(i.oldest_pending) : null, cell: (i) => i.oldest_pending ? duration(since(i.oldest_pending)) : '–' },
  { name: 'spool', title: 'Spool', num: true, sort: (i) => i.spool_bytes, cell: (i) => bytes(i.spool_bytes) },
  { name: 'backlog', title: 'Not reported', num: true, sort: (i) => i.backlog_rows, cell: (i) => plural(i.backlog_rows, 'row') },
  { name: 'version', title: 'Version', sort: (i) => i.version, cell: (i) => i.version },
]

const labelText = (labels) => Object.entries(labels ?? {}).sort(([a], [b]) => a < b ? -1 : 1).map(([k, v]) => `${k}=${v}`).join(' ')

export function fleetInstances(ctx, _, first) {
  let params = first
  const state = { sort: { by: 'state', down: true }, page: 0 }
  const set = (change) => {
    Object.assign(state, change)
    ctx.redraw()
  }
  return {
    title: () => 'Instances',
    update(to) {
      params = to
      state.page = 0
    },
    render() {
      const all = ctx.data.instances?.instances
      if (!all) return [title('Instances'), h('p.empty', {}, 'Looking …')]
      const keys = [...new Set(all.flatMap((i) => Object.keys(i.labels ?? {})))].sort()
      const first = keys.includes('service') ? 'service' : keys[0]
      const by = params.by ?? (first ? 'label:' + first : 'version')
      const find = (params.find ?? '').toLowerCase()
      const wanted = all.filter((i) => (!params.state || stateOf(i) === params.state) && (!params.group || groupOf(by)(i) === params.group) &&
        (!find || `${i.instance_id} ${i.version} ${labelText(i.labels)}`.toLowerCase().includes(find)))
      const rows = sorted(sorted(wanted, COLUMNS, { by: 'heartbeat' }), COLUMNS, state.sort)
      const page = Math.min(state.page, Math.max(0, Math.ceil(rows.length / PER) - 1))
      return [
        title('Instances'),
        groups(all, by, keys, params, ctx),
        h('section', { 'aria-labelledby': 'one' }, h('h2', { id: 'one' }, 'One by one'),
          h('div.bar', {},
            h('label', {}, 'State ', h('select', { onchange: (e) => ctx.go({ ...params, state: e.target.value }) }, ['', ...Object.keys(STATES)].map((s) => h('option', { value: s, selected: (params.state ?? '') === s }, s || 'any')))),
            h('label', {}, 'Find ', h('input', { type: 'search', value: params.find ?? '', oninput: (e) => ctx.go({ ...params, find: e.target.value }) })),
            params.group ? h('button', { type: 'button', onclick: () => ctx.go({ ...params, group: '' }) }, `Only ${params.group} ✕`) : null,
            h('span.faint', {}, `${count(rows.length)} of ${plural(all.length, 'instance')}`)),
          table({
            caption: 'Instances', columns: COLUMNS, rows: rows.slice(page * PER, (page + 1) * PER), key: (i) => i.instance_id, empty: 'No instance matches.',
            sort: state.sort, onsort: (c) => set({ sort: nextSort(state.sort, c) }), rowClass: (i) => stateOf(i) === 'silent' ? 'warn' : '',
          }), pager(rows.length, page, PER, (page) => set({ page }))),
      ]
    },
  }
}

const groupOf = (by) => (i) => by === 'version' ? i.version || '–' : i.labels?.[by.slice('label:'.length)] ?? '–'

function groups(all, by, keys, params, ctx) {
  const sums = new Map()
  for (const i of all) {
    const key = groupOf(by)(i)
    if (!sums.has(key)) sums.set(key, { key, live: 0, silent: 0, stopped: 0, waiting: 0, dead: 0, backlog: 0, oldest: null })
    const g = sums.get(key)
    g[stateOf(i)]++
    g.waiting += i.pending + i.awaiting_retry
    g.dead += i.dead_letter
    g.backlog += i.backlog_rows
    if (i.oldest_pending && (!g.oldest || i.oldest_pending < g.oldest)) g.oldest = i.oldest_pending
  }
  const rows = [...sums.values()].sort((a, b) => b.silent - a.silent || b.dead - a.dead || b.live - a.live || (a.key < b.key ? -1 : 1))
  const options = [...keys.map((k) => ['label:' + k, k]), ['version', 'version']]
  return h('section', { 'aria-labelledby': 'groups' },
    h('div.bar', {}, h('h2', { id: 'groups' }, 'Together'),
      h('label', {}, 'by ', h('select', { onchange: (e) => ctx.go({ ...params, by: e.target.value, group: '' }) }, options.map(([v, text]) => h('option', { value: v, selected: by === v }, text))))),
    table({
      caption: 'Instances by ' + by.replace('label:', ''), rows: rows.slice(0, 20), key: (g) => g.key, empty: '', rowClass: (g) => g.silent ? 'warn' : '',
      columns: [
        { name: 'key', title: by.replace('label:', ''), rowHead: true, class: 'name', cell: (g) => h('button.link', { type: 'button', onclick: () => ctx.go({ ...params, by, group: g.key }) }, g.key) },
        { name: 'live', title: 'Live', num: true, cell: (g) => count(g.live) }, { name: 'silent', title: 'Silent', num: true, cell: (g) => g.silent ? mark('warn', 'warn', count(g.silent)) : '0' },
        { name: 'stopped', title: 'Stopped', num: true, cell: (g) => count(g.stopped) }, { name: 'waiting', title: 'Waiting', num: true, cell: (g) => count(g.waiting) },
        { name: 'dead', title: 'Dead', num: true, cell: (g) => count(g.dead) }, { name: 'oldest', title: 'Oldest', num: true, cell: (g) => g.oldest ? duration(since(g.oldest)) : '–' },
        { name: 'backlog', title: 'Not reported', num: true, cell: (g) => plural(g.backlog, 'row') },
      ],
    }), rows.length > 20 ? h('p.faint', {}, `and ${rows.length - 20} more: group by something else, or find them below`) : null)
}
