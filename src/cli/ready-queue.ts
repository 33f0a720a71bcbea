/**
 * Which message of a corpus may be posted next: one whose parent the board has acknowledged.
 *
 * The children of a message that is not posted (too long, refused) move to its own parent: they are attached to the nearest ancestor that
 * was posted, or start a thread if there is none. Pure; bounded by `held`, which the reader watches.
 */
import type { CorpusMessage } from './corpus.ts'

export type ReadyMessage = { readonly message: CorpusMessage; readonly replyTo: string | undefined }

type ReadyCounts = {
  /** Attached to a more distant ancestor because the parent was not posted. */
  readonly reattached: number
  /** Started a new thread because no ancestor was posted, or the parent never appeared. */
  readonly rootless: number
}

/** Returns the event id of a message that was posted, in this run or before. */
type EventIdLookup = (corpusId: string) => string | undefined

type Waiting = { readonly message: CorpusMessage; readonly further: readonly string[] }

export class ReadyQueue {
  readonly #eventIdOf: EventIdLookup
  #ready: ReadyMessage[] = []
  #readyStart = 0
  /** Parent's id -> messages that wait for it, in the order of the file. */
  readonly #waiting = new Map<string, Waiting[]>()
  #waitingCount = 0
  /** Messages that will not be posted -> their parent. */
  readonly #dropped = new Map<string, string | undefined>()
  #reattached = 0
  #rootless = 0

  constructor(eventIdOf: EventIdLookup) {
    this.#eventIdOf = eventIdOf
  }

  /** Number of messages inside: ready, or waiting for a parent. */
  get held(): number {
    return this.#ready.length - this.#readyStart + this.#waitingCount
  }

  get hasReady(): boolean {
    return this.#ready.length > this.#readyStart
  }

  get counts(): ReadyCounts {
    return { reattached: this.#reattached, rootless: this.#rootless }
  }

  add(message: CorpusMessage): void {
    this.#addBelow(message, message.parent, message.ancestors)
  }

  /** `further`: fallbacks if `wanted` never appears. */
  #addBelow(message: CorpusMessage, wanted: string | undefined, further: readonly string[]): void {
    const parent = this.#nearest(wanted)
    if (parent === undefined) {
      const [next, ...rest] = further
      return next === undefined ? this.#release(message, undefined) : this.#addBelow(message, next, rest)
    }
    const eventId = this.#eventIdOf(parent)
    if (eventId !== undefined) return this.#release(message, eventId, parent)
    const siblings = this.#waiting.get(parent)
    if (siblings === undefined) this.#waiting.set(parent, [{ message, further }])
    else siblings.push({ message, further })
    this.#waitingCount += 1
  }

  next(): ReadyMessage | undefined {
    const ready = this.#ready[this.#readyStart]
    if (ready === undefined) return undefined
    this.#readyStart += 1
    // Discard the used front only now and then: shift() on a long array costs time proportional to its length.
    if (this.#readyStart >= 1024) {
      this.#ready = this.#ready.slice(this.#readyStart)
      this.#readyStart = 0
    }
    return ready
  }

  /** Queues a message again that the board asked to send later. */
  again(ready: ReadyMessage): void {
    this.#ready.push(ready)
  }

  /** `corpusId` was posted: the lookup knows its event id from now on. */
  posted(corpusId: string): void {
    for (const { message, further } of this.#take(corpusId)) this.#addBelow(message, corpusId, further)
  }

  /** `corpusId` will not be posted. */
  drop(corpusId: string, parent: string | undefined): void {
    this.#dropped.set(corpusId, parent)
    for (const { message, further } of this.#take(corpusId)) this.#addBelow(message, corpusId, further)
  }

  /**
   * Nothing is ready or in flight, so no parent will come: the oldest waiting messages move to a further ancestor, or start threads.
   * Returns false if none waits.
   */
  releaseOldest(): boolean {
    const [parent] = this.#waiting.keys()
    if (parent === undefined) return false
    for (const { message, further } of this.#take(parent)) this.#addBelow(message, undefined, further)
    return true
  }

  #take(parent: string): readonly Waiting[] {
    const children = this.#waiting.get(parent)
    if (children === undefined) return []
    this.#waiting.delete(parent)
    this.#waitingCount -= children.length
    return children
  }

  #release(message: CorpusMessage, replyTo: string | undefined, parent?: string): void {
    if (message.parent !== undefined) {
      if (replyTo === undefined) this.#rootless += 1
      else if (parent !== message.parent) this.#reattached += 1
    }
    this.#ready.push({ message, replyTo })
  }

  /** The nearest ancestor that is not dropped; undefined for a cycle of dropped parents. */
  #nearest(parent: string | undefined): string | undefined {
    const passed = new Set<string>()
    let at = parent
    while (at !== undefined && this.#dropped.has(at)) {
      if (passed.has(at)) return undefined
      passed.add(at)
      at = this.#dropped.get(at)
    }
    return at
  }
}
