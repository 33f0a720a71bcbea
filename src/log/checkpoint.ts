/** Reads on the newest signed head: log.checkpoint and /api/log/checkpoint, log.witnesses and /api/log/witnesses. */

import { witnessesMax } from '../../actors/log/results.ts'
import type { AnsweredBy } from '../../actors/operations.ts'
import type { Head } from '../../actors/records/answer.ts'
import type { Clock } from '../clock.ts'
import { ok, type ReadAnswer } from '../reads/read.ts'
import type { WitnessStanding } from './witness/round.ts'

export type WitnessesFacts = {
  /** The head that is served, with its signature lines. */
  readonly published: string
  /** The quorum line of the policy. */
  readonly quorum: string
  readonly standings: readonly WitnessStanding[]
}

/**
 * The answer of log.witnesses and /api/log/witnesses: who else signs the log's heads, and what each said last. `now`: Unix seconds. The
 * answer changes with the clock, not with posts.
 */
function witnessesAnswer({ published, quorum, standings }: WitnessesFacts, now: number): ReadAnswer {
  const size = Number(published.split('\n')[1])
  const witnesses = standings.slice(0, witnessesMax).map((each) => ({
    name: each.name,
    vkey: each.vkey,
    ...(each.url === undefined ? {} : { url: each.url }),
    answer: each.answer,
    ...(each.problem === '' ? {} : { problem: each.problem }),
    ...(each.askedAt === 0 ? {} : { asked_at: each.askedAt }),
    ...(each.signedSize === 0 ? {} : { tree_size: each.signedSize, signed_at: each.signedAt }),
  }))
  const lines = published.slice(published.lastIndexOf('\n\n') + 2).split('\n').length - 1
  return ok({ published: { tree_size: size, cosigned: lines - 1 }, quorum, witnesses }, { until: now + 1 })
}

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
/** Reads that the main thread answers from the newest head. */
export const headReads: Readonly<Partial<Record<string, (context: HeadContext) => ReadAnswer>>> = answers

function checkpointAnswer(
  { origin, vkey }: { readonly origin: string; readonly vkey: string },
  { size, checkpoint }: Head,
): ReadAnswer {
  const root = Buffer.from(checkpoint.split('\n')[2] ?? '', 'base64')
  return ok({ origin, vkey, tree_size: size, root_hash: root.toString('hex'), checkpoint })
}
