/**
 * A result on its way to the market: its room says what it is and binds it, then the market decides, with the fence. What the
 * market does not take is let go again.
 */

import type { RefusalCode } from '../../actors/kernel/refusals.ts'
import type { Bound } from '../../actors/works/market/letters.ts'
import type { Doors, Found } from '../command/plan.ts'
import type { Verified } from '../command/reply.ts'

/** `room`: of the work. `pass` takes `bound` as args, or a refusal. */
export function bindResult(verified: Verified, { courier }: Doors, room: string, pass: (found: Found) => void): void {
  const { command, signer, sha } = verified
  const work = String(command.event_id)
  const result = String(command.target)
  courier.bind({ work, result, room, author: signer.id, sha }, (reply) => {
    if (reply === undefined) return pass(undefined)
    if ('refusal' in reply) {
      const { code, ...rest } = reply.refusal
      return pass({ refusal: { ...rest, code: code as RefusalCode } })
    }
    if ('fault' in reply) {
      const bound: Bound = { id: result, author: '', reply_to: '', sha256: '', fault: reply.fault }
      return pass({ args: { bound } })
    }
    const bound: Bound = reply
    const letGo = () => courier.unbind(work, sha.toString('hex', 0, 16), room)
    pass({
      args: { bound },
      settle: (answer) => {
        // Without an answer the outcome is unknown: the room is sent it, or lets go at the next start.
        if (answer?.ok === false) letGo()
        else if (answer?.ok === true && answer.duplicate === true) courier.whenTold(work, letGo)
      },
    })
  })
}
