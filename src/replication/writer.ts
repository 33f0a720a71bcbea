/** What a board remembers about the stream that it writes to: `replication.json` in the data directory. */
import type { Disk } from '../../storage/disk.ts'
import { followerFile, replicationFile, UnusableDirectory } from '../board-directory.ts'
import { foreignJson } from '../format/foreign-json.ts'
import type { Random } from '../platform.ts'
import { Halted, rejoinAdvice, staleBoardAdvice } from './halted.ts'

type StreamState = {
  /** Id of this data directory, 32 hex. If a copy of the directory runs too, only what it publishes reveals it as another writer. */
  readonly leader: string
  readonly epoch: number
  /** When the stream was created, according to its servers; absent if it was never seen. */
  readonly created?: string
  /** The stream says that this board answers nothing before it has it; that must be changed there first. Absent: it does not. */
  readonly ack?: 'quorum'
  /** A hand-over of this board was begun, and it may not start before that is completed. */
  readonly handsOver?: true
}

export class StreamWriter {
  readonly #disk: Disk
  readonly #file: string
  #state: StreamState

  /** Throws Halted if the file was not written by a board. */
  constructor(disk: Disk, dataDirectory: string, random: Random) {
    this.#disk = disk
    this.#file = replicationFile(dataDirectory)
    this.#state = streamStateIn(disk, dataDirectory) ?? { leader: random(16).toString('hex'), epoch: 1 }
  }

  get leader(): string {
    return this.#state.leader
  }

  get epoch(): number {
    return this.#state.epoch
  }

  /** What must happen before this board answers, as last published to the stream. */
  get ack(): 'local' | 'quorum' {
    return this.#state.ack ?? 'local'
  }

  /** Records that the stream has been told what must happen before this board answers. */
  recordAck(ack: 'local' | 'quorum'): void {
    const { ack: _, ...state } = this.#state
    this.#save({ ...state, ...(ack === 'quorum' ? { ack } : {}) })
  }

  /** Called before publishing that this board will write nothing more. */
  recordHandOver(): void {
    this.#save({ ...this.#state, handsOver: true })
  }

  /** Called before publishing that this board takes over writing from another. */
  recordEpoch(epoch: number, created: string): void {
    const { leader } = this.#state
    this.#save({ leader, epoch, created })
  }

  /** Why a stream with this creation time may not be written to; undefined if it may, and it is then the only one from now on. */
  problemOf(created: string): string | undefined {
    if (this.#state.created === created) return undefined
    if (this.#state.created !== undefined)
      return `The stream was recreated at ${created}: messages that followers had not read are lost. If that was intended, or the servers lost their disks, and no other box leads, stop the board, remove ${this.#file}, and start the board with broadside serve.`
    this.#save({ ...this.#state, created })
    return undefined
  }

  #save(state: StreamState): void {
    this.#state = state
    this.#disk.writeAtomic(this.#file, Buffer.from(`${JSON.stringify(state, null, 2)}\n`))
  }
}

/** Undefined if this board never wrote to a stream. Throws Halted if the file was not written by a board. */
export function streamStateIn(disk: Disk, dataDirectory: string): StreamState | undefined {
  const file = replicationFile(dataDirectory)
  if (!disk.fileExists(file)) return undefined
  const found = foreignJson(disk.readWhole(file).toString('utf8'))
  if (isStreamState(found)) return found
  throw new Halted(
    `${file} is damaged, or was not written by this board. Only if no other box leads this board: stop it, delete the stream, remove this file, and start it with broadside serve. If another box leads, this one becomes its follower. ${rejoinAdvice}`,
  )
}

export const handOverBegun =
  'A hand-over of this board was started but not completed. Run broadside hand-over again to complete it.'

/**
 * Throws UnusableDirectory if another box may lead the board in this directory: what is signed here would be a second log.
 * `canStart`: the directory may be the newest, and a start would tell; otherwise it is an old copy, or lacks a key.
 */
export function refuseUnlessAlone(
  disk: Disk,
  dataDirectory: string,
  { canStart }: { readonly canStart: boolean },
): void {
  if (disk.fileExists(followerFile(dataDirectory)))
    throw new UnusableDirectory(`${dataDirectory} is the directory of a follower. Run this on the box that leads.`)
  const state = streamStateIn(disk, dataDirectory)
  if (state?.handsOver) throw new UnusableDirectory(handOverBegun)
  if (state?.ack === 'quorum')
    throw new UnusableDirectory(
      canStart
        ? 'This board has answered by quorum, so another box may have replaced it. Start it with broadside serve and REPLICATE_ACK=local. It exits if another box leads. Otherwise stop it and run this again.'
        : staleBoardAdvice,
    )
}

function isStreamState(value: unknown): value is StreamState {
  const { leader, epoch, created = '', ...more }: Readonly<Record<string, unknown>> = Object(value)
  const { ack = 'quorum', handsOver = true } = more
  const isWriter = typeof leader === 'string' && /^[0-9a-f]{32}$/.test(leader) && Number.isSafeInteger(epoch)
  return isWriter && Number(epoch) > 0 && typeof created === 'string' && ack === 'quorum' && handsOver === true
}
