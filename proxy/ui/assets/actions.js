// What a person can do, each asked for once more before it is done.
import { h } from './dom.js'
import { name, send } from './api.js'
import { confirm } from './widgets.js'
import { plural } from './format.js'

export function act(endpoint, what) {
  const texts = {
    pause: ['Pause', 'Nothing is sent to it until somebody resumes it, across restarts too. New events are accepted and wait.', 'Paused. Nothing is sent until somebody resumes it.'],
    resume: ['Resume', `${plural(endpoint.queue_depth, 'event')} that ${endpoint.queue_depth === 1 ? 'waits goes' : 'wait go'} on, within its limits.`, 'Resumed.'],
    reset: ['Reset the breaker of', 'The breaker closes, its failures are forgotten and the cooldown is back at its start. What waits goes on at once.', 'The breaker is closed.'],
  }
  const [verb, text, done] = texts[what]
  return confirm({
    heading: `${verb} ${endpoint.name}?`, text, button: verb.split(' ')[0],
    act: async () => {
      await send('POST', `endpoints/${name(endpoint.name)}/${what}`)
      return done
    },
  })
}

export const retryEvent = (event, done) => confirm({
  heading: 'Try this event now?', text: h('span', {}, h('code', {}, event.id), ' becomes due now, with a new budget of attempts and a new TTL. It keeps its ID.'), button: 'Try now',
  act: async () => {
    await send('POST', `events/${name(event.id)}/retry`)
    done()
    return 'The event is due now.'
  },
})

export const deleteEvent = (event, done) => confirm({
  heading: 'Delete this event?', text: h('span', {}, h('code', {}, event.id), ' is dropped for good: it is never sent, and cannot be brought back.'), button: 'Delete', danger: true,
  act: async () => {
    await send('DELETE', `events/${name(event.id)}`)
    done()
    return 'The event is deleted.'
  },
})
