// The dashboard: which view is shown, and how it stays up to date.
import { h, patch } from './dom.js'
import { onToken } from './api.js'
import { Live } from './live.js'
import { askToken, mark, notice } from './widgets.js'
import { themeSwitch } from './theme.js'
import { overview } from './overview.js'
import { endpointView } from './endpoint.js'
import { eventView, eventsView } from './events.js'
import { lettersView } from './letters.js'

const main = document.getElementById('main')
const VIEWS = { '': overview, endpoint: endpointView, events: eventsView, event: eventView, 'dead-letters': lettersView }
const NAV = [['', 'Overview'], ['events', 'Events'], ['dead-letters', 'Dead letters']]
const PARENT = { endpoint: '', event: 'events' }

let view = null, place = null, planned = false

const live = new Live('stream', ['status', 'endpoints', 'activity', 'replays'], ['latency'], redraw)

const ctx = {
  live,
  get data() { return live.data },
  redraw,
  width: () => Math.max(280, main.clientWidth - 2 * parseFloat(getComputedStyle(main).paddingLeft)),
  endpoint: (name) => live.data.endpoints?.endpoints.find((e) => e.name === name),
  latency: (name) => live.data.latency?.endpoints.find((e) => e.name === name),
  // go changes the query of this place without leaving it.
  go(params) {
    const text = new URLSearchParams(Object.entries(params).filter(([, v]) => v)).toString()
    location.hash = '#/' + place.path + (text && '?' + text)
  },
}

// redraw draws once for all that changed within one frame.
function redraw() {
  if (planned) return
  planned = true
  requestAnimationFrame(() => {
    planned = false
    draw()
  })
}

function draw() {
  patch(document.getElementById('where'), connection(), themeSwitch())
  if (!view) return
  patch(main, banner(), view.render())
  const heading = document.title = `${view.title()} · Postern`
  if (place.fresh && main.querySelector('h1')) {
    if (place.moved) main.querySelector('h1').focus()
    place.fresh = false
  }
  return heading
}

const CONNECTION = {
  live: ['ok', 'ok', 'live'], polling: ['off', 'half', 'every 3 s'], connecting: ['off', 'off', 'connecting'],
  offline: ['bad', 'bad', 'offline'], locked: ['warn', 'warn', 'locked'],
}

function connection() {
  const st = live.data.status
  return [h('span.conn', { 'data-state': live.state }, mark(...CONNECTION[live.state])), st ? h('span.instance', { title: `Instance ${st.instance_id}` }, `${st.version} · ${st.instance_id.slice(0, 8)}`) : null]
}

function banner() {
  if (live.state === 'offline') return notice('bad', `${live.error?.message ?? 'Postern does not answer.'} What you see may be old. Asking again …`)
  if (live.state === 'locked') return notice('warn', 'The token is needed to show anything. Load the page again to be asked for it.')
  if (live.data.status && !live.data.status.ready) return notice('warn', 'Postern takes no events now: ', h('a', { href: '/readyz' }, '/readyz'), ' says why.')
  return null
}

// route reads #/place/NAME?query.
function route() {
  const [path, search] = location.hash.replace(/^#\/?/, '').split('?')
  const [name, ...rest] = path.split('/')
  const known = VIEWS[name] ? name : ''
  const next = { path, name: known, arg: decodeURIComponent(rest.join('/')), params: Object.fromEntries(new URLSearchParams(search)) }
  if (place && place.path === path && view.update) {
    place = { ...next, fresh: false }
    view.update(next.params)
    return redraw()
  }
  view?.stop?.()
  place = { ...next, fresh: true, moved: place !== null }
  view = VIEWS[known](ctx, next.arg, next.params)
  patch(document.getElementById('nav'), NAV.map(([to, text]) => h('a', { href: '#/' + to, 'aria-current': (PARENT[known] ?? known) === to ? 'page' : null }, text)))
  scrollTo(0, 0)
  redraw()
}

document.querySelector('.skip').addEventListener('click', (e) => {
  e.preventDefault() // the address after # is the place
  main.focus()
})
onToken(askToken)
addEventListener('hashchange', route)
addEventListener('resize', redraw)
// Countdowns and ages move on, while somebody looks.
setInterval(() => { if (!document.hidden) redraw() }, 1000)
route()
live.start()
