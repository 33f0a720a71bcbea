/**
 * A follower takes over from its leader: it takes everything that the stream has, and then publishes a message with the next
 * epoch. From that message on, the stream accepts nothing from the previous board, which finds out with its next message and
 * has acknowledged no write since.
 *
 * This is done only if the stream holds every acknowledged write: the leader has handed over, or answers by quorum.
 *
 * The process may die after any step: the same is then done again, and continues. The epoch is stored before the message is
 * published. The message is recognized by its epoch and writer. follower.json, which makes this a follower, is removed at the
 * end.
 */
import { Diverged } from '../../storage/copied-frames.ts'
import type { Disk } from '../../storage/disk.ts'
import { becomeLeader, checkKeys, readFacts, UnusableDirectory } from '../board-directory.ts'
import { type Clock, pause } from '../clock.ts'
import type { Config, ReplicationSettings } from '../config.ts'
import { RolledBack, readMarks } from '../log/mark.ts'
import type { Random } from '../platform.ts'
import { Attachments, unreachableLeader } from './attachments.ts'
import { Assembly, type BatchHeader, openPayload, type Part, partsOf } from './batch.ts'
import { CopiedJournals } from './copied-journals.ts'
import { checkLogKey, knownOf, logsOf } from './follower-directory.ts'
import { Deposed, Halted, refusedByMark } from './halted.ts'
import type { LeaderFacts } from './leader-answers.ts'
import type { BoardStream, OpenStream } from './open-stream.ts'
import { publishNext } from './publish.ts'
import { StreamSeal } from './stream-seal.ts'
import { StreamWriter, streamStateIn } from './writer.ts'

type Wanted = {
  readonly disk: Disk
  readonly clock: Clock
  readonly random: Random
  readonly config: Pick<Config, 'dataDirectory' | 'markFile' | 'segmentBytesMax'>
  readonly settings: ReplicationSettings
  readonly openStream: OpenStream
  /** Continues the leader's deliveries: in this directory, as far as their positions were received. Repeating it changes nothing. */
  readonly takeDeliveries: (dataDirectory: string) => void
  /** The newest message when the leader was last missed: if there is a newer one, nothing is done. Absent: it does not matter. */
  readonly after?: number
  readonly report: (level: 'info' | 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void
}

/** `seq`: of the message with which it began. */
export type Leadership = { readonly epoch: number; readonly seq: number }

/** No leadership is vacant. */
export class NotVacant extends Halted {
  override name = 'NotVacant'
}

/** A live leader may publish messages between a follower's attempts. */
const triesMax = 20

const opensWithinMs = 10_000
const retryMs = 500

/**
 * The caller holds the lock of the directory. Throws Halted, Deposed, UnusableDirectory, UnfitServers, Diverged, and errors of
 * the network.
 */
export async function takeLead(wanted: Wanted): Promise<Leadership> {
  const { disk, config, random, report } = wanted
  const { dataDirectory: path, segmentBytesMax } = config
  const known = knownOf(disk, path)
  if (known === undefined) return leadsAlready(wanted)
  const facts = readFacts(disk, path)
  checkKeys(disk, path, { identity: known.identity, readKey: Buffer.from(known.readKey, 'hex') })
  const stream = await openWithRetry(wanted, facts.service_id)
  const journals = new CopiedJournals({ disk, path, random, segmentBytesMax, facts, logs: logsOf(known), report })
  try {
    const leadership = await new TakeOver(wanted, known, stream, journals).run()
    wanted.takeDeliveries(path)
    becomeLeader(disk, path)
    return leadership
  } finally {
    journals.close()
    await stream.close()
  }
}

/** An earlier run was interrupted after its last step. Throws UnusableDirectory if there was none. */
async function leadsAlready(wanted: Wanted): Promise<Leadership> {
  const { disk, config } = wanted
  const { dataDirectory: path } = config
  const state = streamStateIn(disk, path)
  if (state !== undefined) {
    const stream = await openWithRetry(wanted, readFacts(disk, path).service_id)
    try {
      const { lastSeq: seq } = await stream.state()
      const header = seq === 0 ? undefined : (await stream.read(seq))?.header
      if (header !== undefined && isWrittenBy(state, header)) return { epoch: state.epoch, seq }
    } finally {
      await stream.close()
    }
  }
  throw new UnusableDirectory(`${path} is not the directory of a follower. Name the DATA_DIR of one.`)
}

/** Retries while the servers elect their leader, or say that one of them is away. */
async function openWithRetry(wanted: Wanted, serviceId: string): Promise<BoardStream> {
  const { clock, settings, openStream } = wanted
  const until = clock.monotonicMs() + opensWithinMs
  for (;;) {
    try {
      return await openStream(wanted, settings, serviceId, 'refuse')
    } catch (error) {
      if (error instanceof Halted || clock.monotonicMs() > until) throw error
    }
    await pause(clock, retryMs)
  }
}

class TakeOver {
  readonly #wanted: Wanted
  readonly #known: LeaderFacts
  readonly #stream: BoardStream
  readonly #journals: CopiedJournals
  readonly #writer: StreamWriter
  readonly #seal: StreamSeal
  readonly #attachments: Attachments

  constructor(wanted: Wanted, known: LeaderFacts, stream: BoardStream, journals: CopiedJournals) {
    const { disk, random, clock, config } = wanted
    const { dataDirectory } = config
    this.#wanted = wanted
    this.#known = known
    this.#stream = stream
    this.#journals = journals
    this.#writer = new StreamWriter(disk, dataDirectory, random)
    this.#seal = new StreamSeal({ disk, dataDirectory, wallSeconds: clock.wallSeconds, random })
    this.#attachments = new Attachments(disk, dataDirectory, unreachableLeader)
  }

  async run(): Promise<Leadership> {
    let epoch: number | undefined
    for (let tries = 0; tries < triesMax; tries++) {
      const { created, lastSeq } = await this.#stream.state()
      if (lastSeq !== (this.#wanted.after ?? lastSeq) && tries === 0)
        throw new NotVacant('The stream has newer messages: the leader is running, or another follower has taken over.')
      const newest = await this.#readAt(lastSeq)
      const { header } = newest
      if (isWrittenBy(this.#writer, header)) {
        // An earlier run was interrupted after this message.
        this.#checkPlaces(header)
        return { epoch: header.epoch, seq: lastSeq }
      }
      epoch ??= header.epoch
      if (header.epoch !== epoch) throw new Deposed()
      refuseUnanswered(header)
      await this.#takeThrough(lastSeq, header)
      this.#checkPlaces(header)
      this.#checkLogKey()
      this.#checkMarks()
      await this.#findMissing(lastSeq)
      this.#refuseMissing()
      this.#writer.recordEpoch(header.epoch + 1, created)
      if (await this.#begin(lastSeq)) return { epoch: header.epoch + 1, seq: lastSeq + 1 }
    }
    throw new Halted(
      'The leader writes to the stream faster than this follower can read it. Stop the leader, and run this again.',
    )
  }

  async #readAt(seq: number): Promise<Part> {
    if (seq === 0) throw new Halted('The stream is empty. Start the leader, and have this follower follow it first.')
    const found = await this.#stream.read(seq)
    if (found === undefined)
      throw new Halted(
        `The stream no longer has message ${seq}, because it keeps messages for 48 hours. This follower lacks what was in it: let it follow again first.`,
      )
    return found
  }

  /** Takes the messages up to this one that are not here yet. */
  async #takeThrough(lastSeq: number, { journals }: BatchHeader): Promise<void> {
    const { places } = this.#journals
    if (journals.every(({ last }, index) => last <= (places[index]?.last ?? 0))) return
    const assembly = new Assembly(this.#seal)
    for (let seq = await this.#firstMissing(lastSeq); seq <= lastSeq; seq++) {
      const part = await this.#readAt(seq)
      if (!this.#seal.opens(part.header.seal))
        throw new Halted(
          `This follower has no key for message ${seq} of the stream, which it gets from its leader. Let it follow until it has caught up.`,
        )
      const batch = assembly.add(part)
      if (batch === undefined) continue
      const { shares, files } = openPayload(batch.header, batch.payload)
      await this.#attachments.fetchFor(shares.slice(0, -1), files)
      this.#journals.take(shares)
    }
  }

  /** The newest message that begins a batch without a gap to what is here. */
  async #firstMissing(lastSeq: number): Promise<number> {
    const { places } = this.#journals
    for (let seq = lastSeq; ; seq--) {
      if (seq === 0)
        throw new Halted(
          'This follower lacks something that was written before the first message of the stream. Start the leader, and let this follower catch up with it first.',
        )
      const { part, journals } = (await this.#readAt(seq)).header
      if (part === 1 && journals.every(({ first }, index) => first <= places[index]!.last + 1)) return seq
    }
  }

  /** Throws Diverged unless the journals here have exactly what the stream has. */
  #checkPlaces({ journals, part, parts }: Part['header']): void {
    // A batch whose last part is missing was never applied by anyone.
    const isWhole = part === parts
    const { places } = this.#journals
    const isSame = journals.every(({ id, first, last, chain }, index) => {
      const place = places[index]
      return place?.id === id && place.last === (isWhole ? last : first - 1) && (!isWhole || place.chain === chain)
    })
    if (!isSame || places.length !== journals.length)
      throw new Diverged(
        'the journals of this follower differ from those in the stream: empty its directory, and let it follow again',
      )
  }

  #checkLogKey(): void {
    const { disk, config } = this.#wanted
    checkLogKey(disk, config.dataDirectory, this.#journals.log, this.#known.facts.origin)
  }

  /** Checks that everything this box has signed or seen signed is in the log that it will continue. */
  #checkMarks(): void {
    const { disk, config } = this.#wanted
    try {
      this.#journals.checkMarks(readMarks(disk, config))
    } catch (error) {
      if (!(error instanceof RolledBack)) throw error
      throw new Halted(refusedByMark(error.message, config.markFile))
    }
  }

  /** Attachments that came neither with their records nor from the leader are looked for in the stream, newest message first. */
  async #findMissing(lastSeq: number): Promise<void> {
    const { missing } = this.#attachments
    for (let seq = lastSeq; seq > 0 && missing.size > 0; seq--) {
      const first = await this.#stream.read(seq)
      if (first === undefined) return
      const { part, parts, seal, files = [] } = first.header
      if (part !== 1 || !files.some(({ name }) => missing.has(name)) || !this.#seal.opens(seal)) continue
      const assembly = new Assembly(this.#seal)
      let batch = assembly.add(first)
      for (let at = seq + 1; batch === undefined && at < seq + parts && at <= lastSeq; at++)
        batch = assembly.add(await this.#readAt(at))
      if (batch !== undefined) await this.#attachments.takeMissing(openPayload(batch.header, batch.payload).files)
    }
  }

  #refuseMissing(): void {
    const [first] = this.#attachments.missing
    if (first === undefined) return
    throw new Halted(
      `This follower lacks ${this.#attachments.missing.size} attachments that the stream does not have either, such as ${first}. Let it follow until missing-attachments.json is empty, or remove that file to lead without them.`,
    )
  }

  /** Returns false if the leader has published another message meanwhile. */
  async #begin(after: number): Promise<boolean> {
    const { clock, settings, report } = this.#wanted
    const { epoch, leader } = this.#writer
    const journals = this.#journals.marks
    // The mode must be in the stream before anything is answered under it.
    const waits = settings.ack !== 'local'
    const header: BatchHeader = { version: 1, epoch, leader, journals, ...(waits ? { ack: 'quorum' } : {}) }
    this.#writer.recordAck(waits ? 'quorum' : 'local')
    // A follower without the stream has no chain of keys yet.
    this.#seal.begin()
    const [part] = partsOf({ header, payload: Buffer.alloc(0) }, this.#seal)
    try {
      await publishNext({
        stream: this.#stream,
        part: part!,
        after,
        report,
        pause: (ms) => pause(clock, ms),
        isAborted: () => false,
      })
      return true
    } catch (error) {
      if (error instanceof Deposed) return false
      throw error
    }
  }
}

/** Whether this board leads according to this newest message of the stream. */
function isWrittenBy(
  board: Pick<BatchHeader, 'leader' | 'epoch'>,
  { leader, epoch, handedOver }: BatchHeader,
): boolean {
  return leader === board.leader && epoch === board.epoch && !handedOver
}

function refuseUnanswered({ ack, handedOver }: BatchHeader): void {
  if (ack === 'quorum' || handedOver) return
  throw new Halted(
    'The leader answers writes before the stream has them (REPLICATE_ACK=local), and has not handed over: the writes that only it has would be lost, and its log would be signed twice. Stop it and run broadside hand-over there. If its machine is lost, restore a backup.',
  )
}
