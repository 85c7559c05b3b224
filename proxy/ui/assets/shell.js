// What both pages share: which view is shown, drawing it anew, and the frame around it.
import { h, patch } from './dom.js'
import { onToken } from './api.js'
import { askToken, mark, notice, title } from './widgets.js'
import { themeSwitch } from './theme.js'

const CONNECTION = {
  live: ['ok', 'ok', 'live'], polling: ['ok', 'half', 'every few seconds'], connecting: ['off', 'off', 'connecting'],
  offline: ['bad', 'bad', 'offline'], locked: ['warn', 'warn', 'locked'],
}

// open starts a page. make(ctx) gives {live, views, nav, parent, where(), banner()}: live has a state and start(); views
// are made by view(ctx, arg, params), the one named '' is the first; parent says under which entry of nav a view is.
export function open(make) {
  const main = document.getElementById('main')
  let view = null, place = null, planned = false

  // redraw draws once for all that changed within one frame.
  const redraw = () => {
    if (planned) return
    planned = true
    requestAnimationFrame(() => {
      planned = false
      draw()
    })
  }
  const ctx = {
    redraw,
    get data() { return page.live.data },
    width: () => Math.max(280, main.clientWidth - 2 * parseFloat(getComputedStyle(main).paddingLeft)),
    // go changes the query of this place without leaving it.
    go(params) {
      const text = new URLSearchParams(Object.entries(params).filter(([, v]) => v)).toString()
      history.replaceState(null, '', '#/' + place.path + (text && '?' + text))
      route()
    },
  }
  const page = make(ctx)

  function draw() {
    patch(document.getElementById('where'), h('span.conn', { 'data-state': page.live.state }, mark(...CONNECTION[page.live.state])), page.where(), themeSwitch())
    if (!view) return
    patch(main, page.banner(), view.render())
    document.title = `${view.title()} · ${page.name}`
    const heading = main.querySelector('h1')
    if (place.fresh && heading) {
      if (place.moved) heading.focus()
      place.fresh = false
    }
  }

  // route reads #/place/NAME?query.
  function route() {
    const [path, search] = location.hash.replace(/^#\/?/, '').split('?')
    const [name, ...rest] = path.split('/')
    const known = Object.hasOwn(page.views, name)
    const next = { path, arg: decoded(rest.join('/')), params: Object.fromEntries(new URLSearchParams(search)) }
    if (place && place.path === path && view.update) {
      place = { ...next, fresh: false }
      view.update(next.params)
      return redraw()
    }
    view?.stop?.()
    place = { ...next, fresh: true, moved: place !== null }
    view = known ? page.views[name](ctx, next.arg, next.params) : nowhere(path)
    patch(document.getElementById('nav'), page.nav.map(([to, text]) => h('a', { href: '#/' + to, 'aria-current': known && (page.parent[name] ?? name) === to ? 'page' : null }, text)))
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
  page.live.start()
}

// decoded is a name as it was before the address took it; one that was typed by hand may be no valid encoding.
function decoded(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

// nowhere is shown for an address that leads to no page.
const nowhere = (path) => ({
  title: () => 'No such page',
  render: () => [title('No such page'), notice('warn', `There is no page ${path} here. The menu above has those that there are.`)],
})
