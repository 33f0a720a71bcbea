/**
 * The run of an import: reads messages, signs each as its author, and posts it once its parent has been posted.
 *
 * Messages that are not posted are counted and named, never dropped silently. The board's 429 is obeyed, and an unreachable board is waited
 * for. Any other refusal is reported with its reason, and the message's children are attached to the nearest posted ancestor.
 */

import { BoundedMap } from '../../storage/bounded-map.ts'
import { BadAnswer, type BoardClient, Refused, Unreachable } from './client.ts'
import { CommandFailed, type Terminal } from './command-line.ts'
import { type CorpusMessage, handleFor, requestIdFor, shownId, textBytesMax } from './corpus.ts'
import type { ImportState } from './import-state.ts'
import { authorSigner } from './key-file.ts'
import type { MessageSource, SourceEntry } from './message-source.ts'
import { Progress } from './progress.ts'
import { type ReadyMessage, ReadyQueue } from './ready-queue.ts'
import { type CommandFields, type Signer, signCommand } from './sign.ts'
import { durationText, inertLine } from './terminal.ts'

/** Messages read ahead: enough to find ready ones after a deep thread, few enough to fit in memory. */
const heldMax = 20_000
/** Cached derived keys: 200 bytes each. */
const signersMax = 100_000
/** A longer pause is announced, and awaited only if nothing but time helps, because the import is resumable. */
const pauseSecondsMax = 120
const unreachableSecondsMax = 30
/** Ids and line numbers of each kind stored for the report; counting continues beyond this. */
const namedMax = 1000

export type Dropped = { count: number; readonly names: string[] }

export type ImportReport = {
  posted: number
  /** Acknowledged in an earlier run. */
  before: number
  /** Recognized by the board as already posted. */
  duplicates: number
  readonly tooLong: Dropped
  readonly refused: Dropped
  readonly badLines: Dropped
  /** Lines of an export that contain nothing to post. */
  others: number
  /** Other things that are not imported: description -> count. */
  readonly notes: Map<string, number>
  reattached: number
  rootless: number
  handlesNotApplied: number
  pausedSeconds: number
  seconds: number
  readonly latencies: Latencies
  /** The newest acknowledged post, for `demo` to prove. */
  lastEventId: string | undefined
}

type ImportOptions = {
  readonly client: Pick<BoardClient, 'url'>
  /** Sends the posts: one by one, or in batches. */
  readonly sender: Pick<BoardClient, 'command'>
  readonly serviceId: string
  readonly source: MessageSource
  /** Whether the board accepts a post's claim about its source; older ones do not. */
  readonly takesSources: boolean
  readonly state: ImportState
  readonly seed: Uint8Array
  readonly inFlightMax: number
  readonly terminal: Terminal
}

export class Importer {
  readonly #options: ImportOptions
  readonly #queue: ReadyQueue
  readonly #progress: Progress
  readonly #signers = new BoundedMap<string, Signer>(signersMax)
  readonly #idsSeen = new Set<string>()
  readonly #authorsSeen = new Set<string>()
  readonly report: ImportReport
  /** Corpus id of an original -> that of its newest version read. */
  readonly #newestVersions = new Map<string, string>()
  /** Corpus ids whose post requests its author's handle. */
  readonly #asksHandle = new Set<string>()
  readonly #closedRooms = new Set<string>()
  #inFlight = 0
  #linesRead = 0
  #isWhollyRead = false
  #failure: Error | undefined
  #isPaused = false
  #unreachableSinceMs: number | undefined
  #wake: (() => void) | undefined

  constructor(options: ImportOptions) {
    this.#options = options
    this.#queue = new ReadyQueue((id) => options.state.eventIdOf(id))
    this.#progress = new Progress({ terminal: options.terminal, unit: 'posts' })
    this.report = emptyReport()
  }

  /** Runs to the end of the corpus. Throws CommandFailed if it cannot continue; the state then contains what was done. */
  async run(): Promise<ImportReport> {
    try {
      await this.#readAll()
      await this.#finish()
    } finally {
      this.#options.state.flush()
      this.#progress.clear()
      Object.assign(this.report, this.#queue.counts, { seconds: this.#progress.secondsSpent() })
    }
    return this.report
  }

  async #readAll(): Promise<void> {
    for await (const entry of this.#options.source.entries()) {
      while (this.#queue.held >= heldMax) await this.#makeRoom()
      if (this.#failure !== undefined) throw this.#failure
      this.#linesRead += 1
      this.#take(entry)
      this.#pump()
    }
    this.#isWhollyRead = true
  }

  async #finish(): Promise<void> {
    while (this.#queue.held > 0 || this.#inFlight > 0) await this.#makeRoom()
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Waits until something changes. If nothing can, releases the oldest message that waits for a parent. */
  async #makeRoom(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#inFlight === 0 && !this.#queue.hasReady && !this.#isPaused) this.#queue.releaseOldest()
    this.#pump()
    if (this.#inFlight === 0 && !this.#isPaused) return
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }

  #take({ where, line, notes = [] }: SourceEntry): void {
    for (const [count, what] of notes) this.report.notes.set(what, (this.report.notes.get(what) ?? 0) + count)
    if (!line.ok) return this.#drop(this.report.badLines, `${where}: ${line.problem}`)
    if (line.message === undefined) {
      if (notes.length === 0) this.report.others += 1
      return
    }
    const message = this.#chained(line.message)
    if (this.#idsSeen.has(message.id)) {
      return this.#drop(this.report.badLines, `${where}: the id ${shownId(message.id)} appears before`)
    }
    this.#idsSeen.add(message.id)
    if (message.textBytes > textBytesMax) {
      this.#drop(this.report.tooLong, `${shownId(message.id)} (${message.textBytes} bytes)`)
      return this.#queue.drop(message.id, message.parent)
    }
    // An author's first post in the file requests the handle, whichever run sends it: a repeated request must be identical.
    if (!this.#authorsSeen.has(message.author)) {
      this.#authorsSeen.add(message.author)
      if (handleFor(message) !== undefined) this.#asksHandle.add(message.id)
    }
    if (this.#options.state.eventIdOf(message.id) !== undefined) {
      this.report.before += 1
      return this.#queue.posted(message.id)
    }
    this.#queue.add(message)
  }

  /** Each version follows the previous one, so that they stay in the order of the file. */
  #chained(message: CorpusMessage): CorpusMessage {
    const { id, parent, isEdit } = message
    if (!isEdit || parent === undefined) return message
    const before = this.#newestVersions.get(parent) ?? parent
    this.#newestVersions.set(parent, id)
    return { ...message, parent: before }
  }

  /** Never throws, because some callers cannot catch. */
  #pump(): void {
    try {
      while (!this.#isPaused && this.#failure === undefined && this.#inFlight < this.#options.inFlightMax) {
        const ready = this.#queue.next()
        if (ready === undefined) return
        if (this.#closedRooms.has(ready.message.room)) this.#skip(ready.message)
        else this.#send(ready)
      }
    } catch (error) {
      this.#fail(error)
    }
  }

  /** A room that accepts no imports accepts none of the later messages either. */
  #skip({ id, room, parent }: CorpusMessage): void {
    this.#drop(this.report.refused, `${shownId(id)}: room ${room} does not accept imported posts`)
    this.#queue.drop(id, parent)
  }

  #fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error))
  }

  #send(ready: ReadyMessage): void {
    const { sender, serviceId, terminal } = this.#options
    const { message } = ready
    const sentMs = terminal.clock.monotonicMs()
    const signed = signCommand(this.#fieldsOf(ready), {
      signer: this.#signerOf(message),
      serviceId,
      nowSeconds: terminal.clock.wallSeconds(),
    })
    this.#inFlight += 1
    sender
      .command(signed.body)
      .then(
        (answer) => this.#acknowledge(message, signed.eventId, answer, terminal.clock.monotonicMs() - sentMs),
        (error: unknown) => this.#setback(ready, error),
      )
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#inFlight -= 1
        this.#pump()
        this.#wakeUp()
      })
  }

  #fieldsOf({ message, replyTo }: ReadyMessage): CommandFields {
    const beginsThread = replyTo === undefined && message.title !== undefined
    const text = beginsThread ? `${message.title}\n\n${message.text}` : message.text
    const fields: Record<string, string> = { room: message.room, text }
    const isEdit = message.isEdit && replyTo !== undefined
    if (replyTo !== undefined && !isEdit) fields.reply_to = replyTo
    if (message.page !== undefined && !isEdit) fields.page = message.page
    if (message.kind !== undefined && !isEdit) fields.kind = message.kind
    // An edit without a format would keep the previous one, which may not be this version's.
    const format = message.format ?? (isEdit ? 'text' : undefined)
    const source = this.#options.takesSources ? message.source : undefined
    if (isEdit || format !== undefined || source !== undefined)
      fields.data = JSON.stringify({ schema: 1, format, ...(isEdit ? { supersedes: replyTo } : {}), source })
    const handle = this.#asksHandle.has(message.id) ? handleFor(message) : undefined
    if (handle !== undefined) fields.handle = handle
    return { operation: 'post', ...fields, request_id: requestIdFor(message.id) }
  }

  #signerOf({ author, system }: CorpusMessage): Signer {
    const known = system === undefined ? author : `${system}\n${author}`
    let signer = this.#signers.get(known)
    if (signer === undefined) {
      signer = authorSigner(this.#options.seed, author, system)
      this.#signers.set(known, signer)
    }
    return signer
  }

  #acknowledge(message: CorpusMessage, expectedId: string, answer: Record<string, unknown>, latencyMs: number): void {
    const { event_id: eventId, receipt, handle_not_applied: notApplied } = answer
    const isDuplicate = (receipt as { duplicate?: unknown } | undefined)?.duplicate === true
    if (typeof eventId !== 'string' || !/^[0-9a-f]{32}$/.test(eventId) || (eventId !== expectedId && !isDuplicate)) {
      throw new BadAnswer(this.#options.client.url, 'the event id of a post is not the one that its signing bytes give')
    }
    this.#unreachableSinceMs = undefined
    this.report.posted += 1
    this.report.lastEventId = eventId
    if (isDuplicate) this.report.duplicates += 1
    if (notApplied !== undefined) this.report.handlesNotApplied += 1
    this.report.latencies.add(latencyMs)
    this.#asksHandle.delete(message.id)
    this.#options.state.record(message.id, eventId)
    this.#queue.posted(message.id)
    this.#progress.update(this.report.posted + this.report.before, this.#totalEstimate(), this.#note())
  }

  #setback(ready: ReadyMessage, error: unknown): void {
    const { message } = ready
    if (error instanceof Unreachable) return this.#awaited(ready, error)
    if (!(error instanceof Refused)) throw error
    if (error.status === 429) return this.#slowDown(ready, error)
    if (error.field === 'data.source') this.#closedRooms.add(message.room)
    this.#drop(this.report.refused, `${shownId(message.id)}: ${error.message}`)
    this.#queue.drop(message.id, message.parent)
  }

  #slowDown(ready: ReadyMessage, error: Refused): void {
    const seconds = error.retryAfterSeconds ?? 1
    const isLong = seconds > pauseSecondsMax
    if (error.code === 'storage_full' || (isLong && error.code !== 'overloaded')) {
      throw new CommandFailed(
        `${error.message} Try again in ${durationText(seconds)}; the same command resumes from here.`,
      )
    }
    this.#queue.again(ready)
    if (error.code === 'rate_limited' && this.report.pausedSeconds === 0) {
      this.#progress.say(
        `${error.message} Waiting as requested. For an import into a board of your own, start it with BROADSIDE_LIMITS=off, ` +
          'which turns off the rates; any other operator can raise them for you (limits.grant).',
      )
    }
    // A board stores a bounded number of request ids and drops them when they expire.
    if (isLong && !this.#isPaused) {
      this.#progress.say(
        `${error.message} Waiting ${durationText(seconds)}, as requested. ` +
          'You can stop the import meanwhile; the same command resumes from here.',
      )
    }
    this.#pause(Math.max(seconds, 0.1))
  }

  #awaited(ready: ReadyMessage, error: Unreachable): void {
    const nowMs = this.#options.terminal.clock.monotonicMs()
    if (this.report.posted === 0) throw error
    if (this.#unreachableSinceMs === undefined) this.#progress.say(`${error.message} Waiting for it to come back.`)
    this.#unreachableSinceMs ??= nowMs
    if (nowMs - this.#unreachableSinceMs > unreachableSecondsMax * 1000) throw error
    this.#queue.again(ready)
    this.#pause(0.5)
  }

  #pause(seconds: number): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.report.pausedSeconds += seconds
    void this.#options.terminal.wait(seconds * 1000).then(() => {
      this.#isPaused = false
      this.#pump()
      this.#wakeUp()
    })
  }

  #wakeUp(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  #drop(kind: Dropped, name: string): void {
    kind.count += 1
    if (kind.names.length < namedMax) kind.names.push(inertLine(name))
  }

  /** Estimates the total: lines read divided by the share of the file read, assuming lines of similar length. Exact once all is read. */
  #totalEstimate(): number {
    const share = this.#options.source.share()
    const lines = this.#isWhollyRead || share === 0 ? this.#linesRead : this.#linesRead / share
    return Math.max(1, lines - this.report.tooLong.count - this.report.refused.count - this.report.badLines.count)
  }

  #note(): string {
    const { tooLong, refused, badLines } = this.report
    const left = tooLong.count + refused.count + badLines.count
    return left === 0 ? '' : `${left} not posted`
  }
}

function emptyReport(): ImportReport {
  const dropped = (): Dropped => ({ count: 0, names: [] })
  return {
    posted: 0,
    before: 0,
    duplicates: 0,
    tooLong: dropped(),
    refused: dropped(),
    badLines: dropped(),
    others: 0,
    notes: new Map(),
    reattached: 0,
    rootless: 0,
    handlesNotApplied: 0,
    pausedSeconds: 0,
    seconds: 0,
    latencies: new Latencies(),
    lastEventId: undefined,
  }
}

/** Bucket k holds latencies from 1 us * 1.02^k on; 1,200 buckets reach beyond 5 hours. */
const ratio = 1.02
const bucketCount = 1200

/** Latencies as a histogram of fixed size: any number of samples, percentiles within 2%. */
class Latencies {
  readonly #buckets = new Float64Array(bucketCount)
  #count = 0

  get count(): number {
    return this.#count
  }

  add(ms: number): void {
    const bucket = Math.floor(Math.log(Math.max(1, ms * 1000)) / Math.log(ratio))
    const index = Math.min(bucketCount - 1, bucket)
    this.#buckets[index] = this.#buckets[index]! + 1
    this.#count += 1
  }

  /** The latency in milliseconds that `share` (0..1) of the samples do not exceed; 0 without samples. */
  percentileMs(share: number): number {
    let left = Math.ceil(this.#count * share)
    if (left === 0) return 0
    for (const [index, count] of this.#buckets.entries()) {
      left -= count
      if (left <= 0) return ratio ** (index + 1) / 1000
    }
    return ratio ** bucketCount / 1000
  }
}
