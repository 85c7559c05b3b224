// Says what happens next to an event or an endpoint, and why.
import { because, clock, duration, plural, since, until } from './format.js'

// heldBack is why nothing leaves for an endpoint now, as a sentence, or null.
export function heldBack(endpoint, now = Date.now()) {
  if (!endpoint) return null
  const { breaker, limiter } = endpoint
  if (endpoint.paused) return `The endpoint is paused${endpoint.pause_reason ? ` (${endpoint.pause_reason})` : ''}: nothing is sent until somebody resumes it.`
  if (breaker.state === 'open') return `The endpoint's breaker is open until ${clock(opensUntil(breaker))} (in ${duration(opensUntil(breaker) - now)}): nothing is sent before that, and no event is charged an attempt.`
  if (breaker.state === 'half_open') return 'The endpoint\'s breaker is half open: one attempt at a time tries whether the endpoint is back.'
  if (limiter.throttled_until && until(limiter.throttled_until, now) > 0) return `The endpoint said 429: nothing is sent until ${clock(limiter.throttled_until)}, then one at a time.`
  const at = limiter.next_allowed_at && until(limiter.next_allowed_at, now) > 0 ? ` The next may leave at ${clock(limiter.next_allowed_at)}.` : ''
  switch (limiter.held_by) {
    case 'rate_limited': return `The endpoint's limits have no room now.${at}`
    case 'throttled': return `The endpoint said 429: one is sent at a time.${at}`
    case 'slots': return 'All slots for attempts are taken by other endpoints, or kept for those that answer quickly (concurrency in the configuration).'
    case 'concurrency': return 'As many attempts are running as the endpoint may have at once.'
  }
  return null
}

export const opensUntil = (breaker) => Date.parse(breaker.opened_at) + breaker.cooldown_seconds * 1000

// outlook is {next, why: [sentences], at} for an event.
export function outlook(event, endpoint, now = Date.now()) {
  const last = event.attempts?.at(-1)
  const used = event.max_attempts ? `${event.charged_attempts} of ${event.max_attempts} attempts used.` : `${plural(event.charged_attempts, 'attempt')} used; the endpoint left the configuration, so that nothing is sent until it returns.`
  const held = heldBack(endpoint, now)
  switch (event.state) {
    case 'delivered':
      return { next: 'Nothing follows: delivered' + (event.delivered_at && event.accepted_at ? ` ${duration(Date.parse(event.delivered_at) - Date.parse(event.accepted_at))} after it was accepted.` : '.'), why: [] }
    case 'dead_letter':
      return { next: 'Nothing follows, unless somebody replays it.', why: [deadBecause(event, last)] }
    case 'in_flight':
      return { next: `Attempt ${event.attempt_count + 1} is running.`, why: [`A failure would use one of ${event.max_attempts ?? '?'} attempts; ${used}`] }
  }
  const due = event.next_attempt_at ? until(event.next_attempt_at, now) : 0
  const why = []
  if (event.state === 'failed') why.push(`It waits because ${because(event.last_error, event.last_status_code)}.`)
  if (event.state === 'pending' && due > 0) why.push('The application asked for this delay.')
  why.push(used)
  if (held) why.push(held)
  const next = due > 0 ? `Next attempt in ${duration(due)}, at ${clock(event.next_attempt_at)}` : held ? 'Due, and held back' : 'Due now: it goes as soon as a slot is free'
  return { next: next + '.', why, at: due > 0 ? event.next_attempt_at : null }
}

function deadBecause(event, last) {
  const cause = because(last?.error ?? event.last_error, last?.status_code ?? event.last_status_code)
  switch (event.dead_reason) {
    case 'exhausted': return `All ${event.charged_attempts} attempts were used up; the last one failed because ${cause}.`
    case 'expired': return `Its time to live passed before it could be delivered${last ? `; the last attempt failed because ${cause}` : ''}.`
    case 'permanent': return `No retry mends this: ${cause}.`
    case 'gone': return 'The receiver said 410 Gone: it does not want this any more.'
  }
  return `Given up (${event.dead_reason ?? 'no reason is known'}).`
}

// trouble ranks an endpoint; the worst has the highest number. Each reason is [rank, kind, sentence].
export function troubles(endpoint, latency, now = Date.now()) {
  const out = [], { breaker, queue } = endpoint
  if (endpoint.share_full) out.push([105, 'bad', `its share of the spool is full: new events get 503, ${plural(endpoint.queue_depth, 'event')} waiting, ${plural(queue.dead_letter, 'dead letter')}`])
  if (endpoint.paused) out.push([90, 'warn', `paused${endpoint.paused_at ? ' for ' + duration(since(endpoint.paused_at, now)) : ''}${endpoint.pause_reason ? `: ${endpoint.pause_reason}` : ''}, ${plural(endpoint.queue_depth, 'event')} waiting`])
  if (breaker.state === 'open') out.push([100, 'bad', `breaker open after ${plural(breaker.consecutive_failures, 'failure')} in a row, next try ${opensUntil(breaker) > now ? 'in ' + duration(opensUntil(breaker) - now) : 'now'}, ${plural(endpoint.queue_depth, 'event')} waiting`])
  if (breaker.state === 'half_open') out.push([80, 'warn', `breaker half open: one attempt at a time tries it, ${plural(endpoint.queue_depth, 'event')} waiting`])
  if (endpoint.tls_error) out.push([70, 'warn', `its TLS files cannot be used: ${endpoint.tls_error}`])
  if (endpoint.limiter.throttled_until && until(endpoint.limiter.throttled_until, now) > 0) out.push([60, 'warn', `throttled: it said 429, next in ${duration(until(endpoint.limiter.throttled_until, now))}, ${plural(endpoint.queue_depth, 'event')} waiting`])
  if (latency?.trend?.state === 'slowing') out.push([50, 'warn', slowing(latency.trend)])
  if (breaker.state === 'closed' && breaker.consecutive_failures > 0) out.push([40, 'warn', `${breaker.consecutive_failures} of ${breaker.failure_threshold} failures in a row before its breaker opens`])
  if (queue.dead_letter > 0) out.push([30, 'bad', `${plural(queue.dead_letter, 'dead letter')}`])
  return out.sort((a, b) => b[0] - a[0])
}

export const slowing = (trend) => `getting slower: p95 ${(trend.recent_p95_ms / trend.earlier_p95_ms).toFixed(1)} times what it was (${Math.round(trend.recent_p95_ms)} ms, before ${Math.round(trend.earlier_p95_ms)} ms)`
