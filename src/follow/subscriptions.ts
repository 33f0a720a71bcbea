/**
 * Who follows what: the table of subscriptions for tails and long polls. The thread that publishes a topic is notified of its first
 * subscriber and when the last one leaves; what it pushes is matched to subscribers here. The board also ends subscriptions here.
 */
import type { FollowTell, Topic } from './topics.ts'

export type Subscriber = {
  readonly topics: readonly Topic[]
  /** Identity id of the reader of something private, else ''. */
  readonly reader: string
  /** The key that signed the request, else ''. */
  readonly key: string
  /** Its index among all subscribers, or -1. */
  at: number
}

/** Notified when its reader may no longer read the private room. */
export type MemberWatch = Subscriber & { readonly left: () => void }

type SubscriptionsOptions<Each> = {
  readonly tell: (tell: FollowTell) => void
  /** Whether its reader or key is now refused. */
  readonly isRefused: (subscriber: Each) => boolean
  /** Called when it is refused from now on, or its reader is no longer a member: the subscriber gets nothing more. */
  readonly end: (subscriber: Each, why: 'refused' | 'member') => void
}

type Entry<Each> = { readonly topic: Topic; readonly subscribers: Set<Each> }

export class Subscriptions<Each extends Subscriber> {
  readonly #options: SubscriptionsOptions<Each>
  readonly #entries = new Map<string, Entry<Each>>()
  /**
   * An array rather than a Set: with thousands of entries added and removed, V8 keeps a Set's older tables, which keep all their entries
   * from being collected.
   */
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
    // Called for every room that changes, mostly without followers.
    return this.#entries.size === 0 ? [] : (this.#entries.get(nameOf(topic))?.subscribers ?? [])
  }

  all(): Each[] {
    return [...this.#all]
  }

  topics(): Topic[] {
    return [...this.#entries.values()].map(({ topic }) => topic)
  }

  /** The thread that published these topics is gone, and its successor knows nothing of them. Returns their subscribers. */
  forget(isMeant: (topic: Topic) => boolean): Each[] {
    const meant = [...this.#entries].filter(([, { topic }]) => isMeant(topic))
    for (const [name] of meant) this.#entries.delete(name)
    return meant.flatMap(([, { subscribers }]) => [...subscribers])
  }

  /** Ends the subscriptions whose reader or key is now refused. */
  endRefused(): void {
    for (const subscriber of this.all())
      if (subscriber.key !== '' && this.#options.isRefused(subscriber)) this.#options.end(subscriber, 'refused')
  }

  /** Ends subscriptions of readers who may no longer read the private room. */
  membersLeft(room: string, readers: readonly string[]): void {
    for (const { topic, subscribers } of [...this.#entries.values()])
      if ((topic[0] === 'tail' || topic[0] === 'member') && topic[1] === room && readers.includes(topic.at(-1)!))
        for (const subscriber of [...subscribers]) this.#options.end(subscriber, 'member')
  }
}

const names = new WeakMap<Topic, string>()

/** Thousands share one topic, so its name is computed once. */
function nameOf(topic: Topic): string {
  let name = names.get(topic)
  if (name === undefined) {
    name = topic.join(' ')
    names.set(topic, name)
  }
  return name
}
