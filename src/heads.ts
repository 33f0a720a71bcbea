/**
 * What becomes of each new signed head beside being shown: it is kept as the high-water mark, and offered to witnesses.
 *
 * WITNESS_POLICY names a tlog-policy file whose witnesses sign this board's heads; WITNESS_LOGS one whose logs this board
 * is a witness for.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Head } from '../actors/shard.ts'
import { fileExists, readWhole, writeAtomic } from '../storage/disk.ts'
import { type Policy, parsePolicy } from '../storage/tlog-policy.ts'
import { readSecret } from './board-directory.ts'
import { wallSeconds } from './clock.ts'
import { BadConfig } from './config.ts'
import { MarkKeeper, RolledBack } from './mark.ts'
import { WitnessRound } from './witness/round.ts'
import { Witness } from './witness/witness.ts'

export type HeadsOptions = {
  /** File names; '' where there is none. */
  readonly witnessPolicy: string
  readonly witnessLogs: string
  readonly markFile: string
  readonly dataDirectory: string
  readonly vkey: string
  /** `host[:port]` of the public address. */
  readonly publicHost: string
  readonly consistency: (from: number, to: number) => Promise<readonly Buffer[] | undefined>
  /** A running board hears from a witness that it must not sign on. */
  readonly onRollback: (error: RolledBack) => void
}

export class Heads {
  /** The lines about witnesses and quorum, as a client of this log pins them. */
  readonly policyLines: string
  /** Present when this board is a witness for others. */
  readonly witness: Witness | undefined
  readonly #mark: MarkKeeper
  readonly #round: WitnessRound
  #rollback: RolledBack | undefined

  constructor(options: HeadsOptions) {
    const policy = options.witnessPolicy === '' ? undefined : readPolicy('WITNESS_POLICY', options.witnessPolicy)
    const lines = policy?.text.split('\n').filter((line) => /^\s*(witness|group|quorum)\s/.test(line))
    this.policyLines = `${(lines ?? ['quorum none']).join('\n')}\n`
    this.witness = openWitness(options)
    this.#mark = new MarkKeeper(options.markFile, options.vkey)
    this.#round = new WitnessRound({
      witnesses: policy?.parsed.witnesses ?? [],
      consistency: options.consistency,
      onRollback: (problem) => {
        this.#rollback = new RolledBack(problem)
        options.onRollback(this.#rollback)
      },
    })
  }

  /** The first head of this run: every witness is asked before anything else is signed. Rejects with RolledBack. */
  async begin(head: Head): Promise<void> {
    await this.#round.first(head.checkpoint)
    if (this.#rollback !== undefined) throw this.#rollback
    this.#mark.note(head.checkpoint)
  }

  /** A head that is signed and durable. */
  note(head: Head): void {
    this.#mark.note(head.checkpoint)
    this.#round.note(head.checkpoint)
  }

  /** The newest head that went through the witness round, with the lines of those who signed it; without witnesses, `newest`. */
  published(newest: Head): string {
    return this.#round.isAlone ? newest.checkpoint : this.#round.published
  }

  async close(newest: Head): Promise<void> {
    await this.#round.close()
    this.#mark.note(newest.checkpoint)
    await this.#mark.close()
  }
}

function openWitness({ witnessLogs, dataDirectory, publicHost }: HeadsOptions): Witness | undefined {
  if (witnessLogs === '') return undefined
  const { parsed } = readPolicy('WITNESS_LOGS', witnessLogs)
  if (parsed.logs.length === 0)
    throw new BadConfig(`WITNESS_LOGS names ${witnessLogs}, which has no line "log <vkey>".`)
  const keyFile = join(dataDirectory, 'keys', 'witness.key')
  if (!fileExists(keyFile)) writeAtomic(keyFile, Buffer.from(`${randomBytes(32).toString('hex')}\n`), 0o600)
  return new Witness({
    directory: join(dataDirectory, 'witness'),
    name: `${publicHost}/witness`,
    seed: readSecret(keyFile),
    logs: parsed.logs,
    now: wallSeconds,
  })
}

/** Throws BadConfig with the file and the line that is wrong. */
function readPolicy(variable: string, file: string): { readonly text: string; readonly parsed: Policy } {
  if (!fileExists(file)) throw new BadConfig(`${variable} names ${file}, which does not exist.`)
  const text = readWhole(file).toString('utf8')
  const parsed = parsePolicy(text)
  if (!parsed.ok) throw new BadConfig(`${variable} names ${file}, which is no tlog-policy: ${parsed.problem}.`)
  return { text, parsed: parsed.value }
}
