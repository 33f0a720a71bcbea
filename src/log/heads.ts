/**
 * Processes each new signed head, besides serving it: saves it as the high-water mark, and offers it to witnesses.
 *
 * WITNESS_POLICY names a tlog-policy file with the witnesses that sign this board's heads; WITNESS_LOGS names one with the logs for which
 * this board is a witness.
 */
import { join } from 'node:path'
import { nameOf } from '../../actors/log/book.ts'
import type { ClosedLog } from '../../actors/log/frame.ts'
import type { Head } from '../../actors/records/answer.ts'
import type { Disk } from '../../storage/disk.ts'
import { type Policy, parsePolicy } from '../../storage/tlog-policy.ts'
import { logDirectory, readSecret } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import { BadConfig } from '../environment.ts'
import { log } from '../observe.ts'
import type { Random } from '../platform.ts'
import { type MarkKeeper, RolledBack } from './mark.ts'
import type { LogIdentity } from './signed-log.ts'
import { WitnessRound, type WitnessStanding } from './witness/round.ts'
import { Witness, witnessDirectory, witnessKeyFile } from './witness/witness.ts'

type HeadsOptions = {
  readonly disk: Disk
  readonly random: Random
  /** File names; '' if there is none. */
  readonly witnessPolicy: string
  readonly witnessLogs: string
  readonly dataDirectory: string
  readonly mark: MarkKeeper
  readonly clock: Clock
  /** Every log of the board, oldest first; only the last one grows. */
  readonly logs: readonly LogIdentity[]
  readonly closed: readonly ClosedLog[]
  /** `host[:port]` of the public address. */
  readonly publicHost: string
  /** The consistency path between two sizes of the log with this origin. */
  readonly consistency: (origin: string, from: number, to: number) => Promise<readonly Buffer[] | undefined>
  /** Called when a witness tells a running board that it must stop signing. */
  readonly onRollback: (error: RolledBack) => void
}

export class Heads {
  /** The policy's lines about witnesses and quorum, as clients of this log pin them. */
  readonly policyLines: string
  /** Set if this board is a witness for others. */
  readonly witness: Witness | undefined
  readonly #disk: Disk
  readonly #mark: MarkKeeper
  readonly #vkeys: readonly string[]
  readonly #round: WitnessRound
  /** Witness rounds for the last heads of closed logs, by origin. */
  readonly #ended = new Map<string, WitnessRound>()
  readonly #closed: readonly ClosedLog[]
  readonly #keeping = new Map<string, Promise<void>>()
  #rollback: RolledBack | undefined
  #hasBegun = false

  constructor(options: HeadsOptions) {
    const { clock, disk } = options
    const policy = options.witnessPolicy === '' ? undefined : readPolicy(disk, 'WITNESS_POLICY', options.witnessPolicy)
    const lines = policy?.text.split('\n').filter((line) => /^\s*(witness|group|quorum)\s/.test(line))
    this.policyLines = `${(lines ?? ['quorum none']).join('\n')}\n`
    this.witness = openWitness(options)
    this.#disk = disk
    this.#mark = options.mark
    this.#vkeys = options.logs.map(({ vkey }) => vkey)
    const roundOf = ({ origin }: { readonly origin: string }): WitnessRound => {
      const file = join(logDirectory(options.dataDirectory), `cosigned-${nameOf(origin)}`)
      return new WitnessRound({
        witnesses: policy?.parsed.witnesses ?? [],
        kept: disk.fileExists(file) ? disk.readWhole(file).toString('utf8') : '',
        onPublished: (checkpoint) => {
          if (policy !== undefined) this.#keep(file, checkpoint)
        },
        now: clock.wallSeconds,
        timers: clock,
        consistency: (from, to) => options.consistency(origin, from, to),
        onRollback: (problem) => {
          this.#rollback = new RolledBack(problem)
          if (this.#hasBegun) options.onRollback(this.#rollback)
        },
      })
    }
    this.#closed = options.closed
    for (const log of options.closed) this.#ended.set(log.origin, roundOf(log))
    this.#round = roundOf(options.logs.at(-1)!)
  }

  /** Handles the first head of this run: every witness is queried before anything else is signed. Rejects with RolledBack. */
  async begin(head: Head): Promise<void> {
    const ends = this.#closed.map(async ({ origin, checkpoint, isLost = false }) => {
      const round = this.#ended.get(origin)!
      round.serve(checkpoint)
      // A witness that was away when a log was closed may still sign its final head. If a log's end was lost, witnesses may know more of
      // it, but that is no longer a reason to stop.
      if (!round.isComplete && !isLost) await round.first(checkpoint)
      await round.close()
    })
    await Promise.all([this.#round.first(head.checkpoint), ...ends])
    if (this.#rollback !== undefined) throw this.#rollback
    this.#hasBegun = true
    this.#mark.note(this.#vkeys, head.checkpoint)
  }

  /** Call for each head that is signed and durable. */
  note(head: Head): void {
    this.#mark.note(this.#vkeys, head.checkpoint)
    this.#round.note(head.checkpoint)
  }

  /** The newest head that went through a witness round, with the witnesses' signature lines; without witnesses, `newest`. */
  published(newest: Head): string {
    return this.#round.isAlone ? newest.checkpoint : this.#round.published
  }

  /** The final head of a closed log, with the witnesses' signature lines. */
  ended(origin: string): string | undefined {
    return this.#ended.get(origin)?.published
  }

  /** The facts about the witnesses. */
  standing(newest: Head): {
    readonly published: string
    readonly quorum: string
    readonly standings: readonly WitnessStanding[]
  } {
    const quorum = this.policyLines.split('\n').find((line) => /^\s*quorum\s/.test(line))!
    return { published: this.published(newest), quorum: quorum.trim(), standings: this.#round.standings }
  }

  async close(newest: Head): Promise<void> {
    await this.#round.close()
    this.#mark.note(this.#vkeys, newest.checkpoint)
    await Promise.all(this.#keeping.values())
  }

  /** Saves witness signatures, so that they are served after a restart even if the witnesses are away. One write at a time per file. */
  #keep(file: string, checkpoint: string): void {
    const before = this.#keeping.get(file) ?? Promise.resolve()
    const writing = before
      .then(() => this.#disk.replaceLater(file, checkpoint))
      .catch((error: unknown) => log('warn', 'cosignatures.not_kept', { file, problem: String(error) }))
    this.#keeping.set(file, writing)
  }
}

function openWitness({
  disk,
  clock,
  random,
  witnessLogs,
  dataDirectory,
  publicHost,
}: HeadsOptions): Witness | undefined {
  if (witnessLogs === '') return undefined
  const { parsed } = readPolicy(disk, 'WITNESS_LOGS', witnessLogs)
  if (parsed.logs.length === 0)
    throw new BadConfig(`WITNESS_LOGS names ${witnessLogs}, which has no line "log <vkey>".`)
  const keyFile = witnessKeyFile(dataDirectory)
  if (!disk.fileExists(keyFile)) disk.writeAtomic(keyFile, Buffer.from(`${random(32).toString('hex')}\n`), 0o600)
  return new Witness({
    disk,
    directory: witnessDirectory(dataDirectory),
    name: `${publicHost}/witness`,
    seed: readSecret(disk, keyFile),
    logs: parsed.logs,
    now: clock.wallSeconds,
  })
}

/** Throws BadConfig with the file and line of the error. */
function readPolicy(disk: Disk, variable: string, file: string): { readonly text: string; readonly parsed: Policy } {
  if (!disk.fileExists(file)) throw new BadConfig(`${variable} names ${file}, which does not exist.`)
  let text: string
  try {
    text = disk.readWhole(file).toString('utf8')
  } catch (error) {
    throw new BadConfig(`${variable} names ${file}, which cannot be read: ${(error as Error).message}.`)
  }
  const parsed = parsePolicy(text)
  if (!parsed.ok) throw new BadConfig(`${variable} names ${file}, which is not a tlog-policy: ${parsed.problem}.`)
  return { text, parsed: parsed.value }
}
