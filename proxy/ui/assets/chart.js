// Draws small pictures as SVG. Each has a text beside it or in it that says the same.
import { h, s } from './dom.js'
import { clock, count, ms } from './format.js'

const HOUR = 3600_000

// scale maps values to pixels. Times are drawn on a square root, so that a tail does not flatten all the rest.
const scale = (max, height) => (v) => height - Math.sqrt(Math.min(v, max) / max) * height

// runs splits buckets at gaps, so that no line is drawn where nothing was measured.
function runs(buckets, step) {
  const out = []
  let last = null
  for (const b of buckets) {
    const at = Date.parse(b.start)
    if (last === null || at - last > 1.5 * step) out.push([])
    out.at(-1).push({ ...b, at: at + step / 2 })
    last = at
  }
  return out
}

const line = (points, x, y, value) => points.map((p, i) => `${i ? 'L' : 'M'}${x(p.at).toFixed(1)} ${y(p[value]).toFixed(1)}`).join('')

function area(points, x, y, value, base) {
  return `${line(points, x, y, value)}L${x(points.at(-1).at).toFixed(1)} ${base}L${x(points[0].at).toFixed(1)} ${base}Z`
}

// spark is an endpoint's 24 hours in a table's cell: p95 as a line over p50 as an area, the usual p95 dashed.
export function spark(latency, step, now = Date.now(), width = 132, height = 28) {
  const buckets = latency?.buckets ?? []
  if (!buckets.length) return h('span.faint', {}, 'no samples')
  const trend = latency.trend
  // Room above what is usual, so that an endpoint as fast as ever lies in the middle and a slower one rises.
  const max = Math.max(...buckets.map((b) => b.p95_ms), (trend?.earlier_p95_ms ?? 0) * 2.5, 1) * 1.1
  const x = (t) => Math.min(1, Math.max(0, (t - (now - 24 * HOUR)) / (24 * HOUR))) * width
  const y = scale(max, height)
  const recent = now - 2 * step
  return s('svg.spark', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': sayTrend(trend, buckets) },
    trend?.earlier_p95_ms ? s('line.usual', { x1: 0, x2: width, y1: y(trend.earlier_p95_ms), y2: y(trend.earlier_p95_ms) }) : null,
    runs(buckets, step).map((run) => {
      const late = run.filter((p) => p.at - step / 2 > recent - step)
      if (run.length === 1) return s('circle', { class: 'dot', cx: x(run[0].at), cy: y(run[0].p95_ms), r: 1.8 })
      return [
        s('path.p50', { d: area(run, x, y, 'p50_ms', height) }),
        s('path.p95', { d: line(run, x, y, 'p95_ms') }),
        trend?.state === 'slowing' && late.length > 1 ? s('path.late', { d: line(late, x, y, 'p95_ms') }) : null,
      ]
    }))
}

// sayTrend is the picture in words.
export function sayTrend(trend, buckets = []) {
  if (!trend || trend.state === 'unknown') return `p95 over 24 hours, ${count(buckets.length)} half hours with samples; too few for a trend`
  const words = { slowing: 'getting slower', faster: 'faster than before', steady: 'steady' }
  return `p95 over 24 hours: ${words[trend.state]}, ${ms(trend.recent_p95_ms)} lately, ${ms(trend.earlier_p95_ms)} before`
}

const TICKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 20_000, 30_000, 60_000, 120_000]

// latencyChart is the large picture with axes.
export function latencyChart(latency, step, width, label) {
  const buckets = latency?.buckets ?? []
  const now = Date.now(), left = 48, right = 4, top = 8, bottom = 22, height = 200
  const inner = { w: width - left - right, h: height - top - bottom }
  const hours = latency.hours ?? 24
  const max = Math.max(...buckets.map((b) => b.p95_ms), latency.trend?.earlier_p95_ms ?? 0, 1) * 1.1
  const x = (t) => left + Math.min(1, Math.max(0, (t - (now - hours * HOUR)) / (hours * HOUR))) * inner.w
  const of = scale(max, inner.h)
  const y = (v) => top + of(v)
  const ticks = spread(TICKS.filter((t) => t <= max), (t) => y(t), 26)
  return s('svg.chart', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': `${label}. ${sayTrend(latency.trend, buckets)}` },
    ticks.map((t) => [
      s('line.grid', { x1: left, x2: width - right, y1: y(t), y2: y(t) }),
      s('text.tick', { x: left - 8, y: y(t) + 4, 'text-anchor': 'end' }, ms(t).replace('.0 ', ' ').replace('.00 ', ' ')),
    ]),
    hourTicks(now, hours, width).map((t) => [
      s('line.grid', { x1: x(t), x2: x(t), y1: height - bottom, y2: height - bottom + 4 }),
      s('text.tick', { x: x(t), y: height - 4, 'text-anchor': 'middle' }, clock(t, false).slice(-5)),
    ]),
    s('line.axis', { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
    latency.trend?.earlier_p95_ms ? s('line.usual', { x1: left, x2: width - right, y1: y(latency.trend.earlier_p95_ms), y2: y(latency.trend.earlier_p95_ms) }) : null,
    runs(buckets, step).map((run) => run.length === 1
      ? [s('circle', { class: 'dot', cx: x(run[0].at), cy: y(run[0].p95_ms), r: 2.5 }), s('circle', { class: 'dot low', cx: x(run[0].at), cy: y(run[0].p50_ms), r: 2.5 })]
      : [
          s('path.p50', { d: area(run, x, y, 'p50_ms', height - bottom) }), s('path.p50line', { d: line(run, x, y, 'p50_ms') }),
          s('path.p95', { d: line(run, x, y, 'p95_ms') }),
          latency.trend?.state === 'slowing' ? s('path.late', { d: line(run.filter((p) => p.at > now - 3 * step), x, y, 'p95_ms') }) : null,
        ]))
}

// spread keeps ticks that are far enough from each other, the largest first.
function spread(ticks, place, gap) {
  const kept = []
  for (const t of ticks.toReversed()) if (kept.every((k) => Math.abs(place(k) - place(t)) >= gap)) kept.push(t)
  return kept
}

function hourTicks(now, hours, width) {
  const every = Math.max(1, Math.ceil(hours / (width < 500 ? 4 : 8) / 3) * 3) * HOUR
  const zone = new Date().getTimezoneOffset() * 60_000
  const out = []
  for (let t = Math.ceil((now - hours * HOUR - zone) / every) * every + zone; t < now - every / 6; t += every) if (t > now - hours * HOUR + every / 6) out.push(t)
  return out
}

// activityChart is the last hour minute by minute: delivered upwards, failed attempts below the line.
export function activityChart(minutes, width, height = 64) {
  if (!minutes?.length) return null
  const most = Math.max(...minutes.map((m) => m.delivered), 1), worst = Math.max(...minutes.map((m) => m.failed), 0)
  const upper = worst ? Math.max(height * most / (most + worst), height * 0.55) : height - 1
  const lower = height - 1 - upper
  const each = width / minutes.length, wide = Math.max(1, each - 1.5)
  const total = minutes.reduce((a, m) => ({ d: a.d + m.delivered, f: a.f + m.failed }), { d: 0, f: 0 })
  const label = `The last hour by the minute: ${count(total.d)} events delivered, ${count(total.f)} attempts failed, at most ${count(most)} delivered in a minute.`
  return s('svg.bars', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label },
    minutes.map((m, i) => [
      m.delivered ? bar('up', i * each, upper - Math.max(1.5, m.delivered / most * upper), wide, Math.max(1.5, m.delivered / most * upper), m) : null,
      m.failed ? bar('down', i * each, upper + 1, wide, Math.max(1.5, m.failed / worst * lower), m) : null,
    ]),
    s('line.axis', { x1: 0, x2: width, y1: upper + 0.5, y2: upper + 0.5 }))
}

function bar(kind, x, y, width, height, m) {
  return s('rect', { class: kind, x: x.toFixed(1), y: y.toFixed(1), width: wideEnough(width), height: height.toFixed(1) },
    s('title', {}, `${clock(m.start, false)}: ${count(m.delivered)} delivered, ${count(m.failed)} failed`))
}

const wideEnough = (w) => w.toFixed(1)

// meter is how much of something is used.
export function meter(used, of, kind = '') {
  const part = of > 0 ? Math.min(1, used / of) : 0
  return s('svg.meter', { viewBox: '0 0 48 6', width: 48, height: 6, 'aria-hidden': 'true', class: kind || (part >= 1 ? 'full' : '') },
    s('rect.track', { width: 48, height: 6, rx: 3 }), part > 0 ? s('rect.used', { width: Math.max(3, part * 48).toFixed(1), height: 6, rx: 3 }) : null)
}
