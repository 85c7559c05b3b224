// What the pages have in common: states with their signs, tables that can be sorted, dialogs.
import { h, patch } from './dom.js'
import { Problem } from './api.js'
import { count } from './format.js'

// mark is a sign with a word. The sign differs by shape, so that colour is never alone.
const SIGNS = { ok: '●', warn: '▲', bad: '■', half: '◐', off: '○', busy: '◆', done: '✓', wait: '◷' }
export const mark = (kind, sign, ...text) => h('span.mark', { class: kind }, h('span.sign', { 'aria-hidden': 'true' }, SIGNS[sign]), h('span', {}, ...text))

const STATES = {
  pending: ['off', 'wait', 'pending'], in_flight: ['busy', 'busy', 'in flight'], failed: ['warn', 'warn', 'failed, will be retried'],
  delivered: ['ok', 'done', 'delivered'], dead_letter: ['bad', 'bad', 'dead letter'],
}
export const eventState = (state) => mark(...(STATES[state] ?? ['off', 'off', state]))

const BREAKERS = { closed: ['ok', 'ok', 'closed'], half_open: ['warn', 'half', 'half open'], open: ['bad', 'bad', 'open'] }
export const breakerMark = (state) => mark(...(BREAKERS[state] ?? ['off', 'off', state]))

export const link = (to, ...text) => h('a', { href: '#/' + to }, ...text)
export const title = (text, ...more) => h('div.title', {}, h('h1', { tabindex: '-1' }, text), ...more)
export const notice = (kind, ...text) => h('p.notice', { class: kind, role: kind === 'bad' ? 'alert' : null }, ...text)

// facts is a list of names and values; those without a value are left out.
export const facts = (...list) => h('dl.facts', {}, list.filter((f) => f && f[1] !== null && f[1] !== undefined).map(([name, ...value]) => h('div', {}, h('dt', {}, name), h('dd', {}, ...value))))

// table makes one with a caption. Columns: {name, title, num, wide, sort, cell(row)}. On narrow screens a row becomes a
// card, in which data-title names each cell; explicit roles keep it a table for screen readers.
export function table({ caption, columns, rows, key, sort, onsort, empty, rowClass }) {
  if (!rows.length) return h('p.empty', {}, empty)
  const head = (c) => {
    const dir = sort?.by === c.name ? (sort.down ? 'descending' : 'ascending') : c.sort ? 'none' : null
    const sign = dir === 'ascending' ? '↑' : dir === 'descending' ? '↓' : ''
    return h('th', { scope: 'col', role: 'columnheader', class: cellClass(c), 'aria-sort': dir === 'none' ? null : dir },
      c.sort ? h('button.sort', { type: 'button', onclick: () => onsort(c) }, c.num && sign ? h('span', { 'aria-hidden': 'true' }, sign, ' ') : null, c.title, !c.num && sign ? h('span', { 'aria-hidden': 'true' }, ' ', sign) : null) : c.head?.() ?? c.title)
  }
  return h('table', { role: 'table' },
    h('caption', {}, caption),
    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, columns.map(head))),
    h('tbody', { role: 'rowgroup' }, rows.map((row) => h('tr', { role: 'row', 'data-key': key(row), class: rowClass?.(row) || null },
      columns.map((c, i) => h(c.rowHead ? 'th' : 'td', {
        class: cellClass(c), role: c.rowHead ? 'rowheader' : 'cell', scope: c.rowHead ? 'row' : null, 'data-title': i ? c.title : null,
      }, c.cell(row)))))))
}

const cellClass = (c) => [c.num ? 'num' : '', c.class ?? ''].join(' ').trim() || null

// sorted sorts by a column's sort function; what has no value comes last, whatever the direction.
export function sorted(rows, columns, sort) {
  const by = columns.find((c) => c.name === sort.by)?.sort
  if (!by) return rows
  const turn = sort.down ? -1 : 1
  const none = (v) => v === null || v === undefined
  return rows.map((row) => [by(row), row]).sort(([a], [b]) => none(a) || none(b) ? none(a) - none(b) : (a < b ? -1 : a > b ? 1 : 0) * turn).map(([, row]) => row)
}

export const nextSort = (sort, c) => ({ by: c.name, down: sort.by === c.name ? !sort.down : !!c.num })

// pager shows which part of a list is on the page.
export function pager(total, page, per, go) {
  if (total <= per) return null
  const last = Math.ceil(total / per) - 1
  return h('nav.pager', { 'aria-label': 'Parts of the list' },
    h('button', { type: 'button', disabled: page <= 0, onclick: () => go(page - 1) }, 'Previous'),
    h('span', {}, `${page * per + 1}–${Math.min(total, (page + 1) * per)} of ${count(total)}`),
    h('button', { type: 'button', disabled: page >= last, onclick: () => go(page + 1) }, 'Next'))
}

// say has a screen reader tell something, once.
export function say(text) {
  const at = document.getElementById('said')
  at.textContent = ''
  setTimeout(() => { at.textContent = text }, 50)
}

let dialogs = 0

// dialog opens a modal one and answers with what close was called with, or null. build(close) gives its content.
export function dialog(heading, build) {
  return new Promise((done) => {
    const id = 'dialog-' + ++dialogs
    const back = document.activeElement
    let result = null
    const box = h('dialog', { 'aria-labelledby': id })
    const close = (value) => {
      result = value
      box.close()
    }
    box.append(h('form', { method: 'dialog', onsubmit: (e) => e.preventDefault() }, h('h2', { id }, heading), h('div.content', {}, build(close))))
    box.addEventListener('close', () => {
      box.remove()
      if (back?.isConnected) back.focus()
      done(result)
    })
    document.body.append(box)
    box.showModal()
  })
}

// confirm asks before something is done, does it, and shows what came of it. fields are more content, such as inputs;
// ask(box) reads them and does the thing, and answers with a sentence.
export function confirm({ heading, text, fields, button, danger, act }) {
  return dialog(heading, (close) => {
    const result = h('div.result', { role: 'status' })
    const go = h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, button)
    const cancel = h('button', { type: 'button', onclick: () => close(go.hidden ? true : null) }, 'Cancel')
    const content = h('div', {}, text ? h('p', {}, text) : null, fields, result, h('div.buttons', {}, cancel, go))
    const run = async () => {
      go.disabled = true
      patch(result, h('p.faint', {}, 'Working …'))
      try {
        patch(result, notice('ok', await act(content, (t) => patch(result, h('p.faint', {}, t)))))
        go.hidden = true
        cancel.textContent = 'Close'
        cancel.focus()
      } catch (err) {
        patch(result, notice('bad', err.message))
        go.disabled = false
        if (!(err instanceof Problem) && !(err instanceof Refused)) throw err
      }
    }
    go.onclick = run
    return content
  })
}

// Refused is what a dialog's own check says.
export class Refused extends Error {}

// askToken is the dialog for the token.
export function askToken(wrong) {
  return dialog('Token needed', (close) => {
    const field = h('input', { type: 'password', id: 'token', autocomplete: 'off', spellcheck: 'false', required: true, autofocus: true })
    return h('div', {}, wrong ? notice('bad', 'This token is not the one that Postern wants.') : null,
      h('p', {}, 'This listener asks for a token: the content of its token_file. It is kept in this tab until you close it, and nowhere else.'),
      h('label', { for: 'token' }, 'Token'), field,
      h('div.buttons', {}, h('button', { type: 'button', onclick: () => close(null) }, 'Cancel'),
        h('button.primary', { type: 'submit', onclick: () => field.value.trim() && close(field.value.trim()) }, 'Continue')))
  })
}
