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
  /** Its place among all, or -1. */
  at: number
}

/** Told when its reader may not read the private room any more. */
export type MemberWatch = Subscriber & { readonly left: () => void }

type SubscriptionsOptions<Each> = {
  readonly tell: (tell: FollowTell) => void
  /** Is this key refused by now? */
  readonly isOver: (key: string) => boolean
  /** Its key is refused from now on, or its reader is no member any more: nothing more is for it. */
  readonly end: (subscriber: Each, why: 'key' | 'member') => void
}

type Entry<Each> = { readonly topic: Topic; readonly subscribers: Set<Each> }

export class Subscriptions<Each extends Subscriber> {
  readonly #options: SubscriptionsOptions<Each>
  readonly #entries = new Map<string, Entry<Each>>()
  /** A list: in a Set that thousands enter and leave, what V8 keeps of its older tables keeps them all from being collected. */
  readonly #all: Each[] = []

  constructor(options: SubscriptionsOptions<Each>) {
    this.#options = options
  }

  add(subscriber: Each): void {
    subscriber.at = this.#all.push(subscriber) - 1
    for (const topic of subscriber.topics) {
      const name = nameOf(topic)
      let entry = this.#entries.get(name)
      if (entry === undefined) {
        entry = { topic, subscribers: new Set() }
        this.#entries.set(name, entry)
        this.#options.tell(['follow', topic])
      }
      entry.subscribers.add(subscriber)
    }
  }

  remove(subscriber: Each): void {
    if (subscriber.at < 0) return
    const last = this.#all.pop()!
    last.at = subscriber.at
    if (last !== subscriber) this.#all[last.at] = last
    subscriber.at = -1
    for (const topic of subscriber.topics) {
      const name = nameOf(topic)
      const subscribers = this.#entries.get(name)?.subscribers
      // The topic may have been forgotten, and followed again by others.
      if (subscribers?.delete(subscriber) !== true || subscribers.size > 0) continue
      this.#entries.delete(name)
      this.#options.tell(['unfollow', topic])
    }
  }

  of(topic: Topic): Iterable<Each> {
    // Asked of every room that changes, mostly while nobody follows.
    return this.#entries.size === 0 ? [] : (this.#entries.get(nameOf(topic))?.subscribers ?? [])
  }

  all(): Each[] {
    return [...this.#all]
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
    for (const subscriber of this.all())
      if (subscriber.key !== '' && this.#options.isOver(subscriber.key)) this.#options.end(subscriber, 'key')
  }

  /** These readers may not read the private room any more. */
  membersLeft(room: string, readers: readonly string[]): void {
    for (const { topic, subscribers } of [...this.#entries.values()])
      if ((topic[0] === 'tail' || topic[0] === 'member') && topic[1] === room && readers.includes(topic.at(-1)!))
        for (const subscriber of [...subscribers]) this.#options.end(subscriber, 'member')
  }
}

const names = new WeakMap<Topic, string>()

/** Thousands share one topic, so its name is made once. */
function nameOf(topic: Topic): string {
  let name = names.get(topic)
  if (name === undefined) {
    name = topic.join(' ')
    names.set(topic, name)
  }
  return name
}
