// Speaks to the API of this listener, and to nothing else. The token, where one is asked for, is kept for this tab alone.

const KEY = 'postern-token'
let token = sessionStorage.getItem(KEY) ?? ''
let askForToken = null // set by the page

// onToken is called when the API asks for a token; it answers with the one that a person typed, or null.
export function onToken(fn) { askForToken = fn }

export function forgetToken() {
  token = ''
  sessionStorage.removeItem(KEY)
}

export class Problem extends Error {
  constructor(status, title, detail, retryAfter) {
    super(detail || title)
    this.status = status
    this.title = title
    this.retryAfter = retryAfter
  }
}

let asking = null // one question at a time, whoever is refused
let declined = false // nobody is asked again and again

async function ask(wrong) {
  if (declined) return false
  asking ??= askForToken(wrong).finally(() => { asking = null })
  const given = await asking
  declined = !given
  if (!given) return false
  token = given
  sessionStorage.setItem(KEY, given)
  return true
}

async function request(path, options = {}) {
  for (;;) {
    const used = token
    const headers = { ...options.headers }
    if (used) headers.Authorization = 'Bearer ' + used
    let response
    try {
      response = await fetch('/api/v1/' + path, { ...options, headers, cache: 'no-store', credentials: 'omit', redirect: 'error' })
    } catch (err) {
      if (err.name === 'AbortError') throw err
      throw new Problem(0, 'Not reachable', 'Postern does not answer.')
    }
    if (response.ok) return response
    if (response.status === 401 && askForToken && (token !== used || await ask(used !== ''))) continue
    throw await problem(response)
  }
}

async function problem(response) {
  try {
    const body = await response.json()
    return new Problem(response.status, body.title, body.detail, Number(response.headers.get('Retry-After')) || 0)
  } catch {
    return new Problem(response.status, 'HTTP ' + response.status, '', 0)
  }
}

export const get = async (path, options) => (await request(path, options)).json()

export async function send(method, path, body) {
  const options = { method }
  if (body !== undefined) {
    options.body = JSON.stringify(body)
    options.headers = { 'Content-Type': 'application/json' }
  }
  return (await request(path, options)).json()
}

// query writes parameters; empty ones stay away.
export function query(params) {
  const text = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== '' && v !== null && v !== undefined)).toString()
  return text && '?' + text
}

export const name = encodeURIComponent

// stream reads server-sent events until it ends, and calls take(event, object) for each. EventSource could not send a
// token.
export async function stream(path, signal, take) {
  const response = await request(path, { signal, headers: { Accept: 'text/event-stream' } })
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop()
    for (const block of blocks) read(block, take)
  }
}

function read(block, take) {
  let event = 'message', data = ''
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) event = line.slice(7)
    else if (line.startsWith('data: ')) data += line.slice(6)
  }
  if (data) take(event, JSON.parse(data))
}
