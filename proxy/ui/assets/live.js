// Keeps what the pages show up to date: by the stream, or by asking again and again where there is none.
import { get, stream } from './api.js'

const POLL = 3000 // milliseconds
const SLOWLY = 60_000

const pause = (millis) => new Promise((done) => setTimeout(done, millis))

// Live holds the newest answers and tells its listener of every change.
export class Live {
  constructor(path, parts, slow, changed) {
    Object.assign(this, { path, parts, slow, changed, data: {}, state: 'connecting', error: null })
  }

  start() {
    this.follow()
    this.askSlowly()
    // A page that nobody looks at asks for nothing.
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) this.abort?.abort()
      else this.follow()
    })
  }

  set(state, error = null) {
    this.state = state
    this.error = error
    this.changed()
  }

  take(part, value) {
    this.data[part] = value
    this.changed()
  }

  async follow() {
    if (this.following) return
    this.following = true
    for (let failed = 0; !document.hidden; failed++) {
      this.abort = new AbortController()
      try {
        await stream(this.path, this.abort.signal, (part, value) => {
          failed = 0
          if (this.state !== 'live') this.set('live')
          this.take(part, value)
        })
        await pause(1000) // it ended: Postern stops, or we were too slow
      } catch (err) {
        if (document.hidden) break // we ended it ourselves
        if (err.status === 401) this.set('locked', err)
        else this.set(err.status ? 'polling' : 'offline', err)
      }
      if (this.state !== 'live') await this.poll(Math.min(10, failed + 1))
    }
    this.following = false
  }

  // poll asks by itself for a while, before the stream is tried again.
  async poll(times) {
    for (let i = 0; i < times && !document.hidden; i++) {
      try {
        for (const part of this.parts) this.take(part, await get(part === 'replays' ? 'dead-letters/replays' : part))
        this.set('polling')
      } catch (err) {
        this.set(err.status === 401 ? 'locked' : 'offline', err)
      }
      await pause(POLL)
    }
  }

  // askSlowly is for what changes by the half hour.
  async askSlowly() {
    for (;;) {
      try {
        if (!document.hidden) for (const part of this.slow) this.take(part, await get(part))
      } catch { /* the stream says what is wrong */ }
      await pause(this.data[this.slow[0]] ? SLOWLY : POLL)
    }
  }
}

// Poll asks for each of its parts at its own pace: [name, seconds].
export class Poll {
  constructor(prefix, parts, changed) {
    Object.assign(this, { prefix, parts, changed, data: {}, asOf: {}, state: 'connecting', error: null })
  }

  start() {
    for (const [name, every] of this.parts) this.follow(name, every * 1000)
  }

  async follow(name, every) {
    for (;;) {
      let wait = every
      try {
        if (!document.hidden) {
          const { answer, as_of } = await get(this.prefix + name)
          this.data[name] = answer
          this.asOf[name] = as_of
          this.state = 'polling'
          this.error = null
        }
      } catch (err) {
        this.state = err.status === 401 ? 'locked' : 'offline'
        this.error = err
        wait = Math.min(every, POLL)
      }
      this.changed()
      await pause(document.hidden ? 1000 : wait)
    }
  }
}
