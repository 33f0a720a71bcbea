/**
 * Who follows what: the one table of tails and of long polls. The thread that publishes a topic learns of its first subscriber
 * and of its last one; what it pushes is looked up here. This is also where a subscription is ended by the board.
 */
import type { FollowTell, Topic } from './topics.ts'

export type Subscriber = {
  readonly topics: readonly Topic[]
  /** Identity id in whose name something private is followed, else ''. */
  readonly reader: string
  /** The key that this was asked with, else ''. */
  readonly key: string
  /** Its key is refused from now on, or its reader is no member any more: nothing more is for it. */
  readonly end: (why: 'key' | 'member') => void
}

type Entry<Each> = { readonly topic: Topic; readonly subscribers: Set<Each> }

export class Subscriptions<Each extends Subscriber> {
  readonly #tell: (tell: FollowTell) => void
  readonly #isOver: (key: string) => boolean
  readonly #entries = new Map<string, Entry<Each>>()
  /** Those who follow with a key. */
  readonly #keyed = new Set<Each>()

  /** `isOver`: is this key refused by now? */
  constructor(tell: (tell: FollowTell) => void, isOver: (key: string) => boolean) {
    this.#tell = tell
    this.#isOver = isOver
  }

  add(subscriber: Each): void {
    for (const topic of subscriber.topics) {
      const name = nameOf(topic)
      let entry = this.#entries.get(name)
      if (entry === undefined) {
        entry = { topic, subscribers: new Set() }
        this.#entries.set(name, entry)
        this.#tell(['follow', topic])
      }
      entry.subscribers.add(subscriber)
    }
    if (subscriber.key !== '') this.#keyed.add(subscriber)
  }

  remove(subscriber: Each): void {
    this.#keyed.delete(subscriber)
    for (const topic of subscriber.topics) {
      const name = nameOf(topic)
      const subscribers = this.#entries.get(name)?.subscribers
      // The topic may have been forgotten, and followed again by others.
      if (subscribers?.delete(subscriber) !== true || subscribers.size > 0) continue
      this.#entries.delete(name)
      this.#tell(['unfollow', topic])
    }
  }

  of(topic: Topic): Iterable<Each> {
    return this.#entries.get(nameOf(topic))?.subscribers ?? []
  }

  topics(): Topic[] {
    return [...this.#entries.values()].map(({ topic }) => topic)
  }

  /** The thread that published these topics is gone, and the next one knows nothing of them. Returns who followed them. */
  forget(isMeant: (topic: Topic) => boolean): Each[] {
    const meant = [...this.#entries].filter(([, { topic }]) => isMeant(topic))
    for (const [name] of meant) this.#entries.delete(name)
    return meant.flatMap(([, { subscribers }]) => [...subscribers])
  }

  /** Ends those whose key is refused by now. */
  keysOver(): void {
    for (const subscriber of [...this.#keyed]) if (this.#isOver(subscriber.key)) subscriber.end('key')
  }

  /** These readers may not read the private room any more. */
  membersLeft(room: string, readers: readonly string[]): void {
    for (const { topic, subscribers } of [...this.#entries.values()])
      if (topic[0] === 'tail' && topic[1] === room && readers.includes(topic[3]))
        for (const subscriber of [...subscribers]) subscriber.end('member')
  }
}

function nameOf(topic: Topic): string {
  return topic.join(' ')
}
