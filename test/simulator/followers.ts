/** A client that follows news with a cursor, over every restart: nothing is missing and nothing arrives twice. */
import { Violation } from './board.ts'
import type { Ask } from './checks.ts'
import type { Model } from './model.ts'
import type { Person } from './people.ts'

type Updates = {
  readonly updates: readonly {
    readonly type: string
    readonly event?: { readonly event_id: string; readonly room: string }
  }[]
  readonly cursor: string
  readonly has_more: boolean
}

export class Follower {
  /** Undefined: unsigned. */
  readonly #by: Person | undefined
  readonly #received = new Map<string, string>()
  /** Known when it began, so not expected. */
  #knownBefore: ReadonlySet<string> | undefined
  #cursor = ''

  constructor(by: Person | undefined) {
    this.#by = by
  }

  /** Fetches news. False: not answered, or refused. */
  async poll(ask: Ask, model: Model): Promise<boolean> {
    const known = new Set(model.sent.keys())
    for (;;) {
      const cursor = this.#cursor === '' ? {} : { cursor: this.#cursor }
      const fields = { operation: 'updates.get', limit: 20, data: '{"schema":1,"kinds":["event.posted"]}', ...cursor }
      const { ok, data } = await ask(fields, this.#by)
      if (!ok) return false
      this.#knownBefore ??= known
      const found = data as unknown as Updates
      for (const { event } of found.updates) {
        if (event === undefined) continue
        if (this.#received.has(event.event_id)) throw new Violation('a follower received an event twice')
        if (this.#by === undefined && model.isPrivate(event.room)) throw new Violation('a stranger got a private event')
        this.#received.set(event.event_id, event.room)
      }
      this.#cursor = found.cursor
      if (!found.has_more) return true
    }
  }

  /** At rest: all public posts since it began have arrived. */
  async check(ask: Ask, model: Model): Promise<void> {
    if (!(await this.poll(ask, model))) return
    for (const { id, room, original, by } of model.posts.values()) {
      if (model.expiring.has(original) || model.mayMute(this.#by, by)) continue
      if (this.#knownBefore?.has(id) !== false || id !== original || model.isPrivate(room)) continue
      if (!this.#received.has(id)) throw new Violation('a follower missed an event')
    }
  }
}
