/**
 * Publishes what is durable in the journals, one message after the other, each only if the stream ends with the previous one.
 * If two boards write, one finds out with its next message.
 */
import type { Disk } from '../../storage/disk.ts'
import { type Clock, pause } from '../clock.ts'
import { type BatchHeader, type Part, partsOf } from './batch.ts'
import { Deposed, Halted, Outdated, staleBoardAdvice } from './halted.ts'
import { type Ends, type FrameShares, type JournalDirectories, JournalsOut, type ReadNamed } from './journals-out.ts'
import type { BoardStream } from './open-stream.ts'
import { publishNext } from './publish.ts'
import { StreamAway, type StreamHealth, UnfitServers } from './stream.ts'
import type { StreamSeal } from './stream-seal.ts'
import type { StreamWriter } from './writer.ts'

type PumpOptions = {
  readonly disk: Disk
  readonly clock: Clock
  readonly directories: JournalDirectories
  readonly readNamed: ReadNamed
  readonly ends: Ends
  /** How far the stream is known to have them; an empty stream begins there. */
  readonly from: Ends
  /** The stream has acknowledged the journals up to here. */
  readonly acknowledged: (ends: Ends) => void
  /** Opens what this board remembers about the stream. */
  readonly openWriter: () => StreamWriter
  readonly openStream: () => Promise<BoardStream>
  readonly seal: StreamSeal
  /** What must happen before the board answers. */
  readonly ack: 'local' | 'quorum'
  /** What it means if the stream is out of reach, as a sentence. */
  readonly outageEffect: string
  /** Reports what keeps the pump from publishing; undefined if nothing does. `halted`: it has stopped publishing permanently. */
  readonly tell: (problem: string | undefined, halted: Halted | undefined) => void
  readonly report: (level: 'error' | 'warn' | 'info', event: string, facts: Readonly<Record<string, unknown>>) => void
}

const otherJournals =
  'The journals in the stream differ from those of this board. Was it resharded, or a backup restored?'
const moreJournals = 'The stream has more than the journals of this board. Was a backup restored?'
const beginAgain = 'Then stop the board, delete the stream and replication.json, and start it again.'

const retryFirstMs = 200
const retryMaxMs = 2_000
/**
 * A board that answers by quorum publishes at least this often, even if nothing happens: if it is silent, it is gone. Any other
 * board uses this interval to check servers that have not reported how they sync.
 */
const heartbeatMs = 4_000

export class Pump {
  readonly #options: PumpOptions
  #ends: Ends
  #from: Ends
  #journals: JournalsOut | undefined
  #stream: BoardStream | undefined
  #writer: StreamWriter | undefined
  /** The number of the newest message, which was acknowledged or read. */
  #seq = 0
  #isStopped = false
  #isIdle = false
  #isFinishing = false
  #isHandedOver = false
  /** Everything that this board ever answered or showed is in the stream. */
  #isPromised = false
  #wake = Promise.withResolvers<void>()
  readonly #stopped = Promise.withResolvers<void>()
  /** The last reported problem: servers that stay out of reach are logged only once. */
  #problem = ''

  constructor(options: PumpOptions) {
    this.#options = options
    this.#ends = options.ends
    this.#from = options.from
  }

  advance(ends: Ends): void {
    this.#ends = ends
    this.#isIdle = false
    this.#journals?.advance(ends)
    this.#wake.resolve()
  }

  rewritten(shard: number): void {
    this.#journals?.rewritten(shard)
    this.#wake.resolve()
  }

  /** Whether everything durable is in the stream, as far as known. */
  get isIdle(): boolean {
    return this.#isIdle
  }

  /** The board has stopped: once everything is published, the pump publishes that it will write nothing more, and stops. */
  finish(): void {
    this.#isFinishing = true
    this.#wake.resolve()
  }

  /** Whether the stream has that message. */
  get isHandedOver(): boolean {
    return this.#isHandedOver
  }

  get isOpen(): boolean {
    return this.#stream !== undefined
  }

  /** What the servers report about the stream; undefined while it is not open. Rejects with StreamAway. */
  async health(): Promise<StreamHealth | undefined> {
    return this.#stream?.health()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopped.resolve()
    this.#wake.resolve()
    await this.#stream?.close()
  }

  /** Runs until it is stopped, or permanently halted. Network problems are reported and retried. */
  async run(): Promise<void> {
    const { report, tell, outageEffect } = this.#options
    let waitMs = retryFirstMs
    while (!this.#isStopped) {
      try {
        await this.#begin()
        tell(undefined, undefined)
        this.#problem = ''
        waitMs = retryFirstMs
        await this.#publishAll()
      } catch (error) {
        if (this.#isStopped) return
        const problem = error instanceof Error ? error.message : String(error)
        const halted = error instanceof Halted ? error : undefined
        // If another box leads, the process says so when it exits.
        if (problem !== this.#problem && !(error instanceof Deposed))
          report('error', halted === undefined ? 'replication.interrupted' : 'replication.halted', { problem })
        this.#problem = problem
        const isTold = halted !== undefined || error instanceof UnfitServers
        const why = error instanceof StreamAway ? ` ${problem}` : ''
        tell(isTold ? problem : `The stream is out of reach. ${outageEffect}${why}`, halted)
        await this.#stream?.close()
        this.#stream = undefined
        if (halted !== undefined) return
        await this.#pause(waitMs)
        waitMs = Math.min(waitMs * 2, retryMaxMs)
      }
    }
  }

  /** Waits that long, or until it is stopped. */
  async #pause(ms: number): Promise<void> {
    await Promise.race([pause(this.#options.clock, ms), this.#stopped.promise])
  }

  /** Opens the stream, and finds the position in the journals where it ends. */
  async #begin(): Promise<void> {
    const { openStream, openWriter, report, ack } = this.#options
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
    // Nobody has written since this process did.
    const isOwn = this.#seq > 0 && lastSeq === this.#seq
    this.#seq = lastSeq
    const newest = lastSeq === 0 ? undefined : await this.#stream.read(lastSeq)
    // A board that answers by quorum writes every few seconds; if its message is gone, another may have taken over.
    if (lastSeq > 0 && newest === undefined && !isOwn && writer.ack === 'quorum') throw new Outdated()
    this.#journals = this.#journalsAfter(newest?.header, writer)
    this.#isPromised = ack === 'quorum' && writer.ack === 'quorum'
    // It had handed over, and is back before another has taken over.
    if (newest?.header.handedOver) await this.#send(this.#journals.mark)
    if (ack === 'local' && writer.ack === 'quorum') {
      // Before anything is answered that only this box has, the stream must say that it may not have everything any more.
      await this.#send(this.#journals.mark)
      writer.recordAck('local')
    }
    this.#acknowledge()
    report('info', 'replication.begun', { seq: lastSeq })
  }

  #acknowledge(): void {
    const taken = this.#journals!.taken
    this.#from = taken
    this.#promise(taken)
    this.#options.acknowledged(taken)
  }

  /**
   * An earlier run may have answered before the stream had the frames that existed at this start. Once the stream has those
   * too, the quorum promise holds.
   */
  #promise({ log, shards }: Ends): void {
    const { ack, ends } = this.#options
    if (this.#isPromised || ack === 'local') return
    if (log < ends.log || shards.some((last, shard) => last < ends.shards[shard]!)) return
    this.#writer!.recordAck('quorum')
    this.#isPromised = true
  }

  /** A reader of the journals from where the stream ends. */
  #journalsAfter(newest: Part['header'] | undefined, { leader, ack }: StreamWriter): JournalsOut {
    const { disk, directories, readNamed } = this.#options
    const after = (from: Ends) => new JournalsOut(disk, directories, this.#ends, from, readNamed)
    if (newest === undefined) return after(this.#from)
    if (newest.leader !== leader) throw new Deposed()
    // A batch whose last part is missing was never applied by anyone, and is sent again.
    const isWhole = newest.part === newest.parts
    // A copy made before the board answered by quorum does not record that it did, but the stream does.
    const advice = ack === 'quorum' || newest.ack === 'quorum' ? staleBoardAdvice : beginAgain
    const halted = (problem: string) => new Halted(`${problem} ${advice}`)
    const lasts = newest.journals.map(({ first, last }) => (isWhole ? last : first - 1))
    const ends = [...this.#ends.shards, this.#ends.log]
    if (lasts.length !== ends.length) throw halted(otherJournals)
    if (lasts.some((last, index) => last > ends[index]!)) throw halted(moreJournals)
    const from = { shards: lasts.slice(0, -1), log: lasts.at(-1)! }
    const journals = after(from)
    const isSame = journals.places.every(({ id, chain }, index) => {
      const published = newest.journals[index]!
      return id === published.id && (!isWhole || chain === published.chain)
    })
    if (!isSame) throw halted(otherJournals)
    return journals
  }

  async #publishAll(): Promise<void> {
    for (;;) {
      const woken = this.#wake.promise
      const batch = this.#journals!.next()
      if (batch !== undefined) {
        await this.#send(batch)
        continue
      }
      if (this.#isFinishing) {
        await this.#send(this.#journals!.mark, { handedOver: true })
        this.#isHandedOver = true
        this.#isStopped = true
        await this.#stream?.close()
        return
      }
      this.#isIdle = true
      const isWoken = await this.#rest(woken)
      if (this.#isStopped) return
      this.#wake = Promise.withResolvers()
      if (!isWoken) await this.#heartbeat()
    }
  }

  async #heartbeat(): Promise<void> {
    const stream = this.#stream!
    if (this.#options.ack !== 'local') await this.#send(this.#journals!.mark)
    else if (!stream.isChecked) await stream.check()
  }

  /** Resolves when there is something to publish; with false if there was nothing for a while. */
  #rest(woken: Promise<void>): Promise<boolean> {
    const rested = Promise.withResolvers<boolean>()
    const cancel = this.#options.clock.later(() => rested.resolve(false), heartbeatMs)
    void woken.then(() => {
      cancel()
      rested.resolve(true)
    })
    return rested.promise
  }

  async #send({ payload, ...shares }: FrameShares, more: Pick<BatchHeader, 'handedOver'> = {}): Promise<void> {
    const { report, seal } = this.#options
    const { epoch, leader } = this.#writer!
    const ack = this.#isPromised ? { ack: 'quorum' as const } : {}
    const header: BatchHeader = { version: 1, epoch, leader, ...shares, ...ack, ...more }
    for (const part of partsOf({ header, payload }, seal)) {
      await publishNext({
        stream: this.#stream!,
        part,
        after: this.#seq,
        report,
        pause: (ms) => this.#pause(ms),
        isAborted: () => this.#isStopped,
      })
      this.#seq++
    }
    this.#acknowledge()
  }
}
