// The dashboard of one Postern.
import { h } from './dom.js'
import { Live } from './live.js'
import { open } from './shell.js'
import { notice } from './widgets.js'
import { overview } from './overview.js'
import { endpointView } from './endpoint.js'
import { eventView, eventsView } from './events.js'
import { lettersView } from './letters.js'

open((ctx) => {
  const live = new Live('stream', ['status', 'endpoints', 'activity', 'replays'], ['latency'], ctx.redraw)
  ctx.live = live
  ctx.endpoint = (name) => live.data.endpoints?.endpoints.find((e) => e.name === name)
  ctx.latency = (name) => live.data.latency?.endpoints.find((e) => e.name === name)
  return {
    name: 'Postern', live,
    views: { '': overview, endpoint: endpointView, events: eventsView, event: eventView, 'dead-letters': lettersView },
    nav: [['', 'Overview'], ['events', 'Events'], ['dead-letters', 'Dead letters']],
    parent: { endpoint: '', event: 'events' },
    where() {
      const st = live.data.status
      return st ? h('span.instance', { title: `Instance ${st.instance_id}` }, `${st.version} · ${st.instance_id.slice(0, 8)}`) : null
    },
    banner() {
      if (live.state === 'offline') return notice('bad', `${live.error?.message ?? 'Postern does not answer.'} What you see may be old. Asking again …`)
      if (live.state === 'locked') return notice('warn', 'The token is needed to show anything. Load the page again to be asked for it.')
      if (live.data.status && !live.data.status.ready) return notice('bad', `Not ready: ${live.data.status.reasons.join('; ')}.`)
      return null
    },
  }
})
