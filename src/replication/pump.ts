/**
 * Publishes what is durable in the journals, one message after the other, each only where the stream ends with the one before: of two
 * boards that write, one is found out by its next message.
 *
 * Only an acknowledgment with the expected number is success. Anything else proves nothing, so the same bytes are published again with
 * the same expectation, until they are acknowledged or the message with that number is read: one's own is success, another's means that
 * another board writes.
 */
import type { Disk } from '../../storage/disk.ts'
import { type Clock, pause } from '../clock.ts'
import { type BatchHeader, isSamePart, type Part, partsOf } from './batch.ts'
import { Halted } from './halted.ts'
import { type Ends, JournalsOut } from './journals-out.ts'
import { type JournalStream, UnfitServers } from './stream.ts'
import type { StreamSeal } from './stream-seal.ts'
import type { StreamWriter } from './writer.ts'

type PumpOptions = {
  readonly disk: Disk
  readonly clock: Clock
  readonly directories: { readonly log: string; readonly shards: readonly string[] }
  readonly ends: Ends
  /** As far as the stream is known to have them; where it holds nothing, it begins there. */
  readonly from: Ends
  /** The stream has acknowledged the journals up to here. */
  readonly acknowledged: (ends: Ends) => void
  /** What this board remembers of the stream. */
  readonly openWriter: () => StreamWriter
  readonly openStream: () => Promise<JournalStream>
  readonly seal: StreamSeal
  /** What it costs while the stream is out of reach, as a sentence. */
  readonly costOfSilence: string
  /** What keeps the pump from publishing; undefined: nothing does. `isForGood`: it publishes no more. */
  readonly tell: (problem: string | undefined, isForGood: boolean) => void
  readonly report: (level: 'error' | 'warn' | 'info', event: string, facts: Readonly<Record<string, unknown>>) => void
}

const anotherWrites =
  'Another board writes to the stream of this one, and only one may. If this board has taken its place, stop the other, delete the stream, and start this one again.'

const otherJournals =
  'The stream has other journals than this board. Was it resharded, or a backup put back? Then stop the board, delete the stream and replication.json, and start it again.'

const retryFirstMs = 200
const retryMaxMs = 2_000

export class Pump {
  readonly #options: PumpOptions
  #ends: Ends
  #from: Ends
  #journals: JournalsOut | undefined
  #stream: JournalStream | undefined
  #writer: StreamWriter | undefined
  /** The number of the newest message, which was acknowledged or read. */
  #seq = 0
  #isStopped = false
  #isIdle = false
  #wake = Promise.withResolvers<void>()
  readonly #stopped = Promise.withResolvers<void>()
  /** What was reported last: servers that stay out of reach fill no log. */
  #problem = ''

  constructor(options: PumpOptions) {
    this.#options = options
    this.#ends = options.ends
    this.#from = options.from
  }

  hear(ends: Ends): void {
    this.#ends = ends
    this.#journals?.hear(ends)
    this.#wake.resolve()
  }

  rewritten(shard: number): void {
    this.#journals?.rewritten(shard)
    this.#wake.resolve()
  }

  /** Everything that is durable is in the stream, as far as was heard; or no stream is open. */
  get isIdle(): boolean {
    return this.#isIdle || this.#stream === undefined
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopped.resolve()
    this.#wake.resolve()
    await this.#stream?.close()
  }

  /** Works until it is stopped, or halted for good. What the network does is told and tried again. */
  async run(): Promise<void> {
    const { report, tell, costOfSilence } = this.#options
    let waitMs = retryFirstMs
    while (!this.#isStopped) {
      try {
        await this.#begin()
        tell(undefined, false)
        this.#problem = ''
        waitMs = retryFirstMs
        await this.#publishAll()
      } catch (error) {
        if (this.#isStopped) return
        const problem = error instanceof Error ? error.message : String(error)
        const isForGood = error instanceof Halted
        if (problem !== this.#problem)
          report('error', isForGood ? 'replication.halted' : 'replication.interrupted', { problem })
        this.#problem = problem
        tell(
          isForGood || error instanceof UnfitServers ? problem : `The stream is out of reach. ${costOfSilence}`,
          isForGood,
        )
        await this.#stream?.close()
        this.#stream = undefined
        if (isForGood) return
        await this.#pause(waitMs)
        waitMs = Math.min(waitMs * 2, retryMaxMs)
      }
    }
  }

  /** Until then, or until it is stopped. */
  async #pause(ms: number): Promise<void> {
    await Promise.race([pause(this.#options.clock, ms), this.#stopped.promise])
  }

  /** Opens the stream, and finds where it ends in the journals. */
  async #begin(): Promise<void> {
    const { openStream, openWriter, report } = this.#options
    this.#writer ??= openWriter()
    const writer = this.#writer
    this.#stream = await openStream()
    const { created, lastSeq } = await this.#stream.state()
    const problem = writer.problemOf(created)
    if (problem !== undefined) throw new Halted(problem)
    if (lastSeq < this.#seq)
      report('error', 'replication.lost', {
        acknowledged: this.#seq,
        last: lastSeq,
        note: 'Published again from the journals.',
      })
    this.#seq = lastSeq
    const newest = lastSeq === 0 ? undefined : await this.#stream.read(lastSeq)
    if (newest === 'foreign') throw new Halted(anotherWrites)
    this.#journals = this.#journalsAfter(newest?.header, writer.leader)
    this.#acknowledge()
    report('info', 'replication.begun', { seq: lastSeq })
  }

  #acknowledge(): void {
    this.#from = this.#journals!.taken
    this.#options.acknowledged(this.#from)
  }

  /** The journals from where the stream ends. */
  #journalsAfter(newest: Part['header'] | undefined, leader: string): JournalsOut {
    const { disk, directories } = this.#options
    if (newest === undefined) return new JournalsOut(disk, directories, this.#ends, this.#from)
    if (newest.leader !== leader) throw new Halted(anotherWrites)
    // A batch whose last part is missing was never applied by anybody, and is sent again.
    const isWhole = newest.part === newest.parts
    const lasts = newest.journals.map(({ first, last }) => (isWhole ? last : first - 1))
    const ends = [...this.#ends.shards, this.#ends.log]
    if (lasts.length !== ends.length) throw new Halted(otherJournals)
    if (lasts.some((last, index) => last > ends[index]!))
      throw new Halted(
        'The stream has more than the journals of this board. Was a backup put back? Then stop the board, delete the stream and replication.json, and start it again.',
      )
    const from = { shards: lasts.slice(0, -1), log: lasts.at(-1)! }
    const journals = new JournalsOut(disk, directories, this.#ends, from)
    const isSame = journals.places.every(({ id, chain }, index) => {
      const told = newest.journals[index]!
      return id === told.id && (!isWhole || chain === told.chain)
    })
    if (!isSame) throw new Halted(otherJournals)
    return journals
  }

  async #publishAll(): Promise<void> {
    const { epoch, leader } = this.#writer!
    for (;;) {
      const woken = this.#wake.promise
      const batch = this.#journals!.next()
      if (batch === undefined) {
        this.#isIdle = true
        await woken
        if (this.#isStopped) return
        this.#wake = Promise.withResolvers()
        this.#isIdle = false
        continue
      }
      const header: BatchHeader = { version: 1, epoch, leader, journals: batch.journals }
      const { payload } = batch
      for (const part of partsOf({ header, payload }, this.#options.seal)) await this.#publish(part)
      this.#acknowledge()
    }
  }

  async #publish(part: Part): Promise<void> {
    const { report } = this.#options
    const stream = this.#stream!
    for (let waitMs = retryFirstMs; ; waitMs = Math.min(waitMs * 2, retryMaxMs)) {
      if (!stream.isChecked) await stream.check()
      const done = await stream.publish(part, this.#seq)
      if ('seq' in done && done.seq === this.#seq + 1) break
      report('warn', 'replication.unacknowledged', { expected: this.#seq + 1, ...done })
      const there = await stream.read(this.#seq + 1)
      if (there === 'foreign') throw new Halted(anotherWrites)
      if (there !== undefined && isSamePart(there, part)) break
      if (there !== undefined && there.header.leader !== part.header.leader) throw new Halted(anotherWrites)
      // A server that was no leader any more has said that the stream ends earlier.
      if (there !== undefined) throw new Error(`message ${this.#seq + 1} is there already`)
      const { lastSeq } = await stream.state()
      if (lastSeq !== this.#seq) throw new Error(`the stream ends with message ${lastSeq}, and not ${this.#seq}`)
      await this.#pause(waitMs)
      if (this.#isStopped) throw new Error('stopped')
    }
    this.#seq++
  }
}
