/** Every read operation, answered from state in memory and bodies on disk, as the JSON text of `data`. */

import type { Operation } from '../../actors/kernel/operation.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { Infer } from '../../actors/kernel/schema.ts'
import type { AnsweredBy, AnyReadName, Declaration, ReadName } from '../../actors/operations.ts'
import type { InternalReadName, ShownReadName } from '../../actors/records/internal-operations.ts'
import { mayWrite } from '../../actors/rooms/policy.ts'
import { blobsReads } from '../attachments/reads.ts'
import { directReads } from '../conversations/reads.ts'
import { delegationsReads } from '../delegations/reads.ts'
import { documentsReads } from '../documents/reads.ts'
import { updatesReads } from '../follow/reads.ts'
import { limitsReads } from '../limits/reads.ts'
import { moderationReads } from '../moderation/reads.ts'
import { salesReads } from '../payments/sale-reads.ts'
import { peopleReads } from '../people/reads.ts'
import { activityReads, eventsReads } from '../posts/reads.ts'
import type { EventList } from '../reads/event-view.ts'
import {
  type AnswerOf,
  type KnownAnswer,
  known,
  type Read,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
} from '../reads/read.ts'
import { receiversReads } from '../receive-urls/reads.ts'
import { roomsReads } from '../rooms/reads.ts'
import { searchInRoom, searchReads } from '../search/reads.ts'
import { oauthReads } from '../sign-in/reads.ts'
import { subscriptionsReads } from '../subscriptions/reads.ts'
import { threadsReads } from '../threads/reads.ts'
import { callsReads } from '../tool-calls/reads.ts'
import type { IndexAnswers } from '../tools/asks.ts'
import { toolsReads } from '../tools/reads.ts'
import { webhooksReads } from '../webhooks/reads.ts'
import { creditsReads, welcomeReads } from '../works/credit-reads.ts'
import { worksReads } from '../works/reads.ts'

/** Not answered from state: declared as such, or queried by the board itself from the index of the tools directory. */
type AnsweredElsewhere = AnsweredBy<NonNullable<Operation['answeredBy']>> | keyof IndexAnswers

const all = {
  ...eventsReads,
  ...threadsReads,
  ...roomsReads,
  ...moderationReads,
  ...limitsReads,
  ...peopleReads,
  ...delegationsReads,
  ...oauthReads,
  ...directReads,
  ...subscriptionsReads,
  ...documentsReads,
  ...blobsReads,
  ...receiversReads,
  ...callsReads,
  ...salesReads,
  ...toolsReads,
  ...updatesReads,
  ...searchReads,
  ...worksReads,
  ...creditsReads,
  ...activityReads,
  ...webhooksReads,
  ...welcomeReads,
  'events.list': listOrSearch,
  locate,
} satisfies Readonly<Record<Exclude<AnyReadName, AnsweredElsewhere>, Read>> &
  Readonly<Record<Exclude<InternalReadName, ShownReadName | AnsweredElsewhere>, KnownRead>>

/** Reads that no client sees return a value instead of JSON text. */
type KnownRead = (context: ReadContext, request: ReadRequest) => KnownAnswer

type Table = typeof all
type Answers = {
  readonly [Name in AnyReadName]: Name extends keyof Table
    ? ReturnType<Table[Name]> extends ReadAnswer<infer Data>
      ? Data
      : never
    : Name extends keyof IndexAnswers
      ? IndexAnswers[Name]
      : Name extends ReadName
        ? Infer<Declaration<Name>['result']>
        : never
}

declare module '../reads/read.ts' {
  /** A caller of `ReadCall` gets the type that the function above returns. */
  interface ReadTable extends Answers {}
}

/** By operation name. A missing one does not compile. */
const reads: {
  readonly [Name in AnyReadName]?: (context: ReadContext, request: ReadRequest) => ReadAnswer<AnswerOf<Name>>
} = all

export function answerRead<Name extends AnyReadName>(
  context: ReadContext,
  request: ReadRequest<Name>,
): ReadAnswer<AnswerOf<Name>> {
  const read = reads[request.op]
  if (read === undefined) throw new Error(`no read for ${request.op}`)
  return read(context, request)
}

/** A private room is searched in its own shard. */
function listOrSearch(context: ReadContext, request: ReadRequest): ReadAnswer<EventList> {
  return request.args.query === undefined
    ? eventsReads['events.list'](context, request)
    : searchInRoom(context, request)
}

/**
 * Used by the board itself to find which actor decides about a thing. What the reader may not see does not exist for them. An accepted
 * `command` (32 hex) belongs to the actor that accepted it: only its signer has it, and they get their answer again even if they have lost
 * read access.
 */
function locate(
  { state, board, visibility, acceptedBy }: ReadContext,
  { args, reader, operator = false }: ReadRequest,
): KnownAnswer<{ actor: string; hiddenFrom?: { author: string } }> {
  const report = state.rules.report(String(args.thing))
  // Only its author knows a report's id, and only an operator can act on it.
  if (report !== undefined) return known({ actor: report.room })
  const actor = state.actorOf(String(args.thing))
  const room = actor === undefined ? undefined : board.rooms.get(actor)
  const isHidden = room !== undefined && room.visibility === 'private' && !mayWrite(room, reader)
  // Only its shard knows an unlisted document of a public room.
  const isUnlisted = state.documents.find(String(args.thing))?.visibility === 'unlisted'
  const isElsewhere = room !== undefined && room.visibility !== visibility && !isUnlisted
  const author = isHidden && operator && !isElsewhere ? state.makerOf(String(args.thing)) : undefined
  if (actor !== undefined && !isHidden && !isElsewhere) return known({ actor })
  const before = args.command === undefined ? undefined : acceptedBy?.(String(args.command))
  if (before !== undefined) return known({ actor: before })
  // The caller checks whether the author was erased: only then may an operator delete what they cannot read.
  if (actor !== undefined && author !== undefined) return known({ actor, hiddenFrom: { author } })
  return { ok: false, absent: refusal('not_found', `there is nothing with the id ${args.thing}`) }
}
