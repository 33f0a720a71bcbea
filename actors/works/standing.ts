/** What the signer of a command may do in the room of a work: the market needs it to decide. */

import type { Board } from '../records/board.ts'
import type { Parts } from '../records/core.ts'
import { objection } from '../rooms/policy.ts'
import { mayModerate, mayWrite } from '../rooms/roles.ts'
import type { Standing } from './market/letters.ts'

type Asking = { readonly room: string; readonly author: string; readonly operator: boolean }

const stranger: Standing = { reads: false, replies: false, moderates: false }

export function standingIn(
  { state, board, now }: { readonly state: Parts; readonly board: Board; readonly now: number },
  { room: name, author, operator }: Asking,
): Standing {
  const room = board.rooms.get(name)
  if (room === undefined || (room.visibility === 'private' && !mayWrite(room, author))) return stranger
  const policy = state.rules.policyOf(name)
  const candidate = {
    author,
    operator,
    isReply: true,
    isEdit: false,
    ttl: policy.ttl_max,
    proofBits: policy.proof_bits,
  }
  const found = objection(policy, candidate, { board, room, now })
  const replies = found === undefined || !lasting.has(found[0])
  return { reads: true, replies, moderates: mayModerate(room, author, operator) }
}

/** Objections that do not pass by themselves in a moment. */
const lasting: ReadonlySet<string> = new Set(['room_reply_restricted', 'room_write_restricted', 'wrong_state'])
