// Builds elements, and brings what stands on the page to a newly built state without losing focus, selection or scroll.
// Texts only ever become text nodes: nothing here makes markup from strings.

const SVG = 'http://www.w3.org/2000/svg'
const HANDLERS = ['onclick', 'onchange', 'oninput', 'onsubmit', 'onkeydown', 'ontoggle']

// h('td.num', {title: '…'}, 'text', node, [nodes], null) makes an element; classes follow the tag after dots.
export function h(spec, props = {}, ...children) {
  return make(document.createElement(spec.split('.')[0]), spec, props, children)
}

// s is h for SVG.
export function s(spec, props = {}, ...children) {
  return make(document.createElementNS(SVG, spec.split('.')[0]), spec, props, children)
}

function make(el, spec, props, children) {
  const classes = spec.split('.').slice(1)
  if (classes.length) el.setAttribute('class', classes.join(' '))
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (HANDLERS.includes(name)) el[name] = value
    else if (name === 'checked' || name === 'value' || name === 'indeterminate') el[name] = value
    else if (name === 'class') el.setAttribute('class', [...classes, value].join(' ').trim())
    else el.setAttribute(name, value === true ? '' : value)
  }
  el.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false))
  return el
}

// patch makes the children of el like those given.
export function patch(el, ...children) {
  const next = document.createElement(el.nodeName === 'svg' ? 'div' : el.nodeName)
  next.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false))
  const focused = document.activeElement
  patchChildren(el, next)
  // An element that was moved has lost the focus.
  if (focused !== document.activeElement && el.contains(focused)) focused.focus({ preventScroll: true })
}

const keyOf = (node) => node.nodeType === 1 ? node.getAttribute('data-key') : null

function patchChildren(old, next) {
  const keyed = new Map()
  for (const child of old.childNodes) if (keyOf(child) !== null) keyed.set(keyOf(child), child)
  let at = old.firstChild
  for (const want of [...next.childNodes]) {
    const found = keyOf(want) === null ? null : keyed.get(keyOf(want))
    if (found && found !== at) {
      old.insertBefore(found, at)
      at = found
    }
    if (!at) {
      old.append(want)
    } else if (alike(at, want)) {
      patchNode(at, want)
      at = at.nextSibling
    } else if (keyOf(at) !== null) {
      old.insertBefore(want, at) // what stands here may be wanted further down
    } else {
      const after = at.nextSibling
      at.replaceWith(want)
      at = after
    }
  }
  while (at) {
    const after = at.nextSibling
    at.remove()
    at = after
  }
}

const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b)

function patchNode(old, next) {
  if (old.nodeType !== 1) {
    if (old.data !== next.data) old.data = next.data
    return
  }
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name) && !(name === 'open' && old.nodeName === 'DETAILS')) old.removeAttribute(name)
  }
  for (const { name, value } of next.attributes) {
    if (old.getAttribute(name) !== value && !(name === 'open' && old.nodeName === 'DETAILS')) old.setAttribute(name, value)
  }
  for (const on of HANDLERS) if (old[on] !== next[on]) old[on] = next[on]
  if (old.nodeName === 'INPUT' && old.type === 'checkbox') {
    old.checked = next.checked
    old.indeterminate = next.indeterminate
  }
  patchChildren(old, next)
  if (old.nodeName === 'SELECT' && document.activeElement !== old) old.value = next.value
}
