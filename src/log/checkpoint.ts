/** The newest signed head as JSON: what log.checkpoint and /api/log/checkpoint answer. */

import type { AnsweredBy } from '../../actors/operations.ts'
import type { Head } from '../../actors/records/answer.ts'
import type { Clock } from '../clock.ts'
import { ok, type ReadAnswer } from '../reads/read.ts'
import { type WitnessesFacts, witnessesAnswer } from './witnesses.ts'

type HeadContext = {
  /** The log that grows. */
  readonly log: { readonly origin: string; readonly vkey: string }
  readonly head: Head
  readonly heads: { standing(newest: Head): WitnessesFacts }
  readonly clock: Pick<Clock, 'wallSeconds'>
}

const answers: Readonly<Record<AnsweredBy<'head'>, (context: HeadContext) => ReadAnswer>> = {
  'log.checkpoint': ({ log, head }) => checkpointAnswer(log, head),
  'log.witnesses': ({ head, heads, clock }) => witnessesAnswer(heads.standing(head), clock.wallSeconds()),
}
/** Reads on the newest head, which the main thread has. */
export const headReads: Readonly<Partial<Record<string, (context: HeadContext) => ReadAnswer>>> = answers

export function checkpointAnswer(
  { origin, vkey }: { readonly origin: string; readonly vkey: string },
  { size, checkpoint }: Head,
): ReadAnswer {
  const root = Buffer.from(checkpoint.split('\n')[2] ?? '', 'base64')
  return ok({ origin, vkey, tree_size: size, root_hash: root.toString('hex'), checkpoint })
}
