/** The list of one's own receive URLs: their shard knows them, and the front knows which delegations have ended. */
import type { Delegates } from '../command/delegates.ts'
import { dataOf, ok, type ReadCall, type ReadRequest, type Take } from '../reads/read.ts'

type Sources = {
  readonly read: ReadCall
  readonly delegates: Pick<Delegates, 'isActive'>
}

/** Answers the read if it is of this list; returns false if it is not. */
export function readReceivers(request: ReadRequest, { read, delegates }: Sources, answer: Take): boolean {
  if (request.op !== 'receiver.list') return false
  read({ ...request, op: 'receiver.list' }, (found) => {
    if (found === undefined || !found.ok) return answer(found)
    const page = dataOf(found)
    const receivers = page.receivers.map((each) =>
      each.delegation === undefined || delegates.isActive(each.delegation) ? each : { ...each, delegation_ended: true },
    )
    answer(ok({ ...page, receivers }))
  })
  return true
}
