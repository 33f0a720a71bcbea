/** The newest signed head as JSON: what log.checkpoint and /api/log/checkpoint answer. */
import type { Head } from '../../actors/records/answer.ts'
import { ok, type ReadAnswer } from '../reads/read.ts'

export function checkpointAnswer(
  { origin, vkey }: { readonly origin: string; readonly vkey: string },
  { size, checkpoint }: Head,
): ReadAnswer {
  const root = Buffer.from(checkpoint.split('\n')[2] ?? '', 'base64')
  return ok({ origin, vkey, tree_size: size, root_hash: root.toString('hex'), checkpoint })
}
