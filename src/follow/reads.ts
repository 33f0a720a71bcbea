/** Reads for followers: corrections for copies, and tokens for the tails of private rooms. */

import { refusal } from '../../actors/kernel/refusals.ts'
import type { Change } from '../../actors/records/board.ts'
import type { ChangeKind } from '../../actors/records/change-kinds.ts'
import { versionView } from '../reads/event-view.ts'
import {
  endOf,
  limitOf,
  ok,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  refused,
  replyWith,
  showing,
  soonest,
  unending,
  withRoom,
} from '../reads/read.ts'
import { sealReadToken, tokenSecondsDefault } from './read-token.ts'

export const updatesReads = {
  'changes.list': listChanges,
  'room.read_token': (context, request) =>
    withRoom(context, request, ({ name, visibility }) => {
      if (visibility === 'public')
        return refused(
          refusal(
            'wrong_state',
            `room ${name} is public: /tail/${name} shows it to everybody, without a token`,
            'room',
          ),
        )
      const expires = context.now() + Number(request.args.ttl ?? tokenSecondsDefault)
      const token = sealReadToken(context.cursors, { room: name, reader: request.reader, key: request.key!, expires })
      return ok({ room: name, token, expires_at: expires, tail: `/tail/${name}?token=${token}` })
    }),
} satisfies Reads

const corrections: ReadonlySet<ChangeKind> = new Set([
  'event.superseded',
  'event.hidden',
  'event.restored',
  'event.redacted',
])

/** Rows examined for one page; most of them are posts. */
const rowsMax = 50_000
const bytesMax = 256 * 1024

function listChanges(context: ReadContext, { args }: ReadRequest): ReadAnswer {
  const { state, board, generation } = context
  const after = args.after === undefined ? -1 : Number(args.after)
  if (after > board.change) {
    const newest = `the newest change is ${board.change}: go back to your last export, or begin with after=-1`
    return refused(refusal('expired', newest, 'after'))
  }
  if (after === -1) return ok({ changes: [], after: board.change, has_more: false, generation })
  const limit = limitOf(args)
  let row = state.changes.after(after)
  const last = Math.min(state.changes.count, row + rowsMax)
  const found: string[] = []
  let until = unending
  let bytes = 0
  let reached = after
  for (; row < last; row++) {
    const change = state.changes.at(row)
    // Changes with the same number stay together, because the number is all that a follower sends back.
    if ((found.length >= limit || bytes >= bytesMax) && change.position !== reached) break
    reached = change.position
    if (!corrections.has(change.kind)) continue
    const corrected = correction(context, change)
    until = soonest([until, endOf(corrected.events)])
    const text = JSON.stringify(corrected)
    found.push(text)
    bytes += text.length
  }
  const hasMore = row < state.changes.count
  const end = JSON.stringify({ after: hasMore ? reached : board.change, has_more: hasMore, generation })
  return { ok: true, reply: replyWith(`{"changes":[${found.join(',')}],${end.slice(1)}`), until }
}

/** Like an export, a copy holds versions, so all versions affected by a correction are included. */
function correction({ state, board, body, now, handleOf }: ReadContext, { position, kind, slot, at }: Change) {
  const original = state.marks.original(slot)
  const versions = [original, ...state.marks.edits(original)]
  return {
    change: position,
    type: kind,
    at,
    event_id: board.events.idHex(original),
    events: versions.map((each) => versionView(state, each, body(each), showing({ now, handleOf }, true))),
  }
}
