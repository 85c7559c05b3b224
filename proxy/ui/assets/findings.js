// The patterns of dead letters by their names, for both pages.
import { h } from './dom.js'
import { mark } from './widgets.js'

export const PATTERNS = { cluster: 'Outage', credentials: 'Credentials', throttled: 'Throttled', trickle: 'Trickle' }

// patterns lists what was found, each with what to do.
export const patterns = (found) => h('ul.patterns', {}, found.map((f) => h('li', { 'data-key': f.pattern },
  h('p', {}, mark('warn', 'warn', h('b', {}, `${PATTERNS[f.pattern] ?? f.pattern}: `), f.message)), h('p.action', {}, h('b', {}, 'Do: '), f.action))))
