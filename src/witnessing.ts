/**
 * What the environment says of witnesses: WITNESS_POLICY names a tlog-policy file whose witnesses sign this board's heads,
 * WITNESS_LOGS one whose logs this board is a witness for.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { fileExists, readWhole, writeAtomic } from '../storage/disk.ts'
import { type Policy, parsePolicy } from '../storage/tlog-policy.ts'
import { readSecret } from './board-directory.ts'
import { wallSeconds } from './clock.ts'
import { BadConfig } from './config.ts'
import { WitnessRound } from './witness/round.ts'
import { Witness } from './witness/witness.ts'

export type WitnessingOptions = {
  /** File names; '' where there is none. */
  readonly policyFile: string
  readonly logsFile: string
  readonly dataDirectory: string
  /** `host[:port]` of the public address. */
  readonly publicHost: string
  readonly consistency: (from: number, to: number) => Promise<readonly Buffer[] | undefined>
  readonly onRollback: (problem: string) => void
}

export type Witnessing = {
  readonly round: WitnessRound
  /** The lines of the policy about witnesses, as a client of this log is told them. */
  readonly policyLines: string
  /** Present when this board is a witness for others. */
  readonly witness: Witness | undefined
}

/** Throws BadConfig with the file and the line that is wrong. */
export function openWitnessing(options: WitnessingOptions): Witnessing {
  const policy = options.policyFile === '' ? undefined : readPolicy('WITNESS_POLICY', options.policyFile)
  const round = new WitnessRound({
    witnesses: policy?.parsed.witnesses ?? [],
    consistency: options.consistency,
    onRollback: options.onRollback,
  })
  const lines = policy?.text.split('\n').filter((line) => /^\s*(witness|group|quorum)\s/.test(line)) ?? ['quorum none']
  return { round, policyLines: `${lines.join('\n')}\n`, witness: openWitness(options) }
}

function openWitness({ logsFile, dataDirectory, publicHost }: WitnessingOptions): Witness | undefined {
  if (logsFile === '') return undefined
  const { parsed } = readPolicy('WITNESS_LOGS', logsFile)
  if (parsed.logs.length === 0) throw new BadConfig(`WITNESS_LOGS names ${logsFile}, which has no line "log <vkey>".`)
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

function readPolicy(variable: string, file: string): { readonly text: string; readonly parsed: Policy } {
  if (!fileExists(file)) throw new BadConfig(`${variable} names ${file}, which does not exist.`)
  const text = readWhole(file).toString('utf8')
  const parsed = parsePolicy(text)
  if (!parsed.ok) throw new BadConfig(`${variable} names ${file}, which is no tlog-policy: ${parsed.problem}.`)
  return { text, parsed: parsed.value }
}
