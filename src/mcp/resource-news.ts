/**
 * `notifications/resources/updated` for `subscriptions/listen`: a public room, or the list of rooms, has changed. Notifications are sent at
 * most once per second. Nothing is collected without a listener.
 */
import type { ServerEvent, ServerEventBus } from '@modelcontextprotocol/server'
import type { Timers } from '../../actors/kernel/timers.ts'
import { isObject } from './brief.ts'

const everyMs = 1_000
/** Resources that one stream may name; further ones are not acknowledged. */
const watchedMax = 64
const roomsUri = 'board://rooms'
const watchable = /^board:\/\/room(s|\/[a-z0-9][a-z0-9_-]{0,63})$/

export class ResourceNews implements ServerEventBus {
  readonly #timers: Pick<Timers, 'later'>
  readonly #listeners = new Set<(event: ServerEvent) => void>()
  #changed = new Set<string>()

  constructor(timers: Pick<Timers, 'later'>) {
    this.#timers = timers
  }

  subscribe(listener: (event: ServerEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  publish(event: ServerEvent): void {
    for (const listener of this.#listeners) listener(event)
  }

  changed(room: string): void {
    if (this.#listeners.size === 0) return
    if (this.#changed.size === 0) this.#timers.later(() => this.#tell(), everyMs)
    this.#changed.add(`board://room/${room}`)
  }

  #tell(): void {
    const changed = this.#changed
    this.#changed = new Set()
    for (const uri of [roomsUri, ...changed]) this.publish({ kind: 'resource_updated', uri })
  }
}

/** The message without resources that have no notifications; the acknowledgment lists the remaining ones. */
export function withWatched(message: unknown): unknown {
  if (!isObject(message) || message.method !== 'subscriptions/listen' || !isObject(message.params)) return message
  const { notifications } = message.params
  if (!isObject(notifications) || !Array.isArray(notifications.resourceSubscriptions)) return message
  const asked = new Set(notifications.resourceSubscriptions.filter((uri) => typeof uri === 'string'))
  const resourceSubscriptions = [...asked].filter((uri) => watchable.test(uri)).slice(0, watchedMax)
  return { ...message, params: { ...message.params, notifications: { ...notifications, resourceSubscriptions } } }
}
