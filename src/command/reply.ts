/**
 * Turns the answer of an actor or a read into a reply, and renders the receipt of a write: what was accepted, when, and its place in the
 * log.
 */

import { type ActorRefusal as Decided, forCaller, refusal } from '../../actors/kernel/refusals.ts'
import type { Head } from '../../actors/records/answer.ts'
import { type Reply, refused } from '../format/reply.ts'
import { type ReadAnswer, replyText } from '../reads/read.ts'
import type { Give } from './plan.ts'
import type { NoAnswer } from './ports.ts'

/** A refusal by an actor; its code is a declared one. */
export function fromActor(found: Decided): Reply {
  return refused(forCaller(found))
}

/** The refusal of a read that got no answer. */
export const unanswered = refusal('overloaded', 'this board did not answer in time: try again', undefined, 1)

/** The reply to a read. Without an answer, its thread has died or is stuck; unlike a write, the read can simply be sent again. */
export function readReply(answer: ReadAnswer | NoAnswer): Reply {
  if (answer === undefined) return refused(unanswered)
  if (answer.ok) return { status: 200, body: replyText(answer) }
  return refused('refusal' in answer ? answer.refusal : answer.absent)
}

let lastHead: Head | undefined
let lastHeadJson = ''

/** `"tree_size":…,"checkpoint":…` of a head. One head covers a whole batch, so its text is cached. */
function headJson(head: Head): string {
  if (head !== lastHead) {
    lastHead = head
    lastHeadJson = `"tree_size":${head.size},"checkpoint":${JSON.stringify(head.checkpoint)}`
  }
  return lastHeadJson
}

export function receiptJson(
  sha: string,
  facts: { at: number; leaf: number | undefined; head: Head | undefined; duplicate?: boolean },
): string {
  const log =
    facts.leaf === undefined || facts.head === undefined ? '' : `,"log_index":${facts.leaf},${headJson(facts.head)}`
  const duplicate = facts.duplicate === true ? ',"duplicate":true' : ''
  return `{"event_id":"${sha.slice(0, 32)}","command_sha256":"${sha}","accepted_at":${facts.at}${duplicate}${log}}`
}

/** The values that an answer shows, followed by its receipt (JSON text). */
export function withReceipt(shown: Readonly<Record<string, unknown>>, receipt: string): Reply {
  const values = JSON.stringify(shown).slice(1, -1)
  return { status: 200, body: `{"ok":true,"data":{${values}${values === '' ? '' : ','}"receipt":${receipt}}}` }
}

/** The same for a result that became known later. */
export function laterReply(found: Parameters<Give>[0], receipt: string): Reply | undefined {
  if (found === undefined || 'body' in found) return found
  const more = JSON.stringify(found.receipt).slice(1, -1)
  return withReceipt(found.values, more === '' ? receipt : `${receipt.slice(0, -1)},${more}}`)
}
