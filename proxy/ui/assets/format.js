// Writes numbers, times and durations as people read them.

const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

export const count = (n) => grouped.format(n ?? 0)
export const plural = (n, noun, nouns = noun + 's') => `${count(n)} ${n === 1 ? noun : nouns}`

export function ms(value) {
  if (value === null || value === undefined) return '–'
  if (value < 10) return value.toFixed(1) + ' ms'
  if (value < 1000) return Math.round(value) + ' ms'
  if (value < 100_000) return (value / 1000).toFixed(value < 10_000 ? 2 : 1) + ' s'
  return duration(value)
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let unit = 0
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024
    unit++
  }
  return (unit === 0 ? n : n.toFixed(1)) + ' ' + units[unit]
}

// duration takes milliseconds: 4 s, 4 min 10 s, 2 h 5 min, 3 d 4 h.
export function duration(millis) {
  const sec = Math.max(0, Math.floor(millis / 1000))
  if (sec < 60) return sec + ' s'
  if (sec < 3600) return two(Math.floor(sec / 60), 'min', sec % 60, 's')
  if (sec < 86400) return two(Math.floor(sec / 3600), 'h', Math.floor(sec / 60) % 60, 'min')
  return two(Math.floor(sec / 86400), 'd', Math.floor(sec / 3600) % 24, 'h')
}

const two = (a, unit, b, smaller) => b ? `${a} ${unit} ${b} ${smaller}` : `${a} ${unit}`

// span is a duration that may be under a second.
export const span = (millis) => millis < 1 ? 'under 1 ms' : millis < 1000 ? ms(Math.max(0, millis)) : millis < 10_000 ? (millis / 1000).toFixed(1) + ' s' : duration(millis)

const pad = (n) => String(n).padStart(2, '0')

// clock is local time, with the date where it is not today's.
export function clock(text, withSeconds = true) {
  const t = new Date(text)
  const time = `${pad(t.getHours())}:${pad(t.getMinutes())}` + (withSeconds ? `:${pad(t.getSeconds())}` : '')
  if (t.toDateString() === new Date().toDateString()) return time
  return `${t.getFullYear()}-${pad(t.getMonth() + 1)}-${pad(t.getDate())} ${time}`
}

export const until = (text, now = Date.now()) => new Date(text).getTime() - now
export const since = (text, now = Date.now()) => now - new Date(text).getTime()
export const ago = (text, now = Date.now()) => duration(since(text, now)) + ' ago'

// windowName writes a limit's window as the configuration does: 1m, 1h, 30s.
export function windowName(seconds) {
  if (seconds % 3600 === 0) return seconds / 3600 + ' h'
  if (seconds % 60 === 0) return seconds / 60 + ' min'
  return seconds + ' s'
}

const CLASSES = {
  dns: 'the name could not be resolved', connect: 'no connection could be made', tls: 'the TLS handshake failed',
  timeout: 'no answer came within the timeout', connection: 'the connection broke before a whole answer',
  redirect: 'the answer was a redirect, which is never followed', body_rule: 'the body of the answer said no',
  blocked_address: 'the address is not allowed', invalid_request: 'the request cannot be sent as it is',
}

// because words an error class for a sentence.
export function because(error, status) {
  if (!error) return status ? `HTTP ${status}` : 'it failed'
  if (error.startsWith('http_')) return 'HTTP ' + error.slice(5)
  return CLASSES[error] ? `${CLASSES[error]} (${error})` : error
}
