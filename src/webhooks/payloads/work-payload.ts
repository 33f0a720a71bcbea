/** What is delivered of a work: what its own read shows the reader now, judged by what the hook chose with. */

import { excerptChars } from '../../../actors/webhooks/kind-names.ts'
import { dataOf, type ReadContext } from '../../reads/read.ts'
import { worksReads } from '../../works/reads.ts'
import type { Payload, PayloadRequest } from './payload-request.ts'

/** The fields of a work record that are examined. */
type WorkRecord = {
  readonly room?: string
  readonly title?: string
  readonly capabilities?: readonly string[]
  readonly state: string
  readonly eligibility?: string
  readonly simulated?: boolean
  readonly requester?: Person
  readonly reviewer?: Person
  readonly worker?: Person
  readonly reward?: { readonly amount: number }
  readonly request?: { readonly text?: string }
}
type Person = { readonly id: string; readonly handle?: string }

const skip: Payload = { skip: true }

export function workPayload(context: ReadContext, address: string, request: PayloadRequest): Payload {
  const { subject, reader, kind, filter, state, at } = request
  const work = workOf(context, subject, reader)
  if (work === undefined) return skip
  // A work that is taken by now is open no more, and what is made up for practice is no offer.
  if (kind === 'work.open' && (work.state !== 'open' || work.simulated === true)) return skip
  if (kind === 'work.open' && !isWanted(context, work, filter)) return skip
  const { room, title, requester, reward } = work
  const text = work.request?.text ?? ''
  const data = {
    work_id: subject,
    state: kind === 'work.open' ? work.state : state,
    ...(room === undefined ? {} : { room }),
    ...(requester === undefined ? {} : { author: person(requester) }),
    ...(title === undefined ? {} : { title }),
    ...(reward === undefined ? {} : { reward: reward.amount }),
    created_at: at,
    excerpt: [...text.slice(0, 2 * excerptChars)].slice(0, excerptChars).join(''),
    excerpt_is_untrusted: true,
    links:
      context.visibility === 'public'
        ? {
            web: `${address}/e/${subject}`,
            api: `${address}/api/work/${subject}`,
            proof: `${address}/e/${subject}/proof`,
          }
        : { api: `${address}/v1/command` },
  }
  return { data: JSON.stringify(data) }
}

function workOf(context: ReadContext, id: string, reader: string): WorkRecord | undefined {
  const found = worksReads['work.get'](context, { op: 'work.get', args: { event_id: id }, reader })
  return found.ok ? dataOf(found).work : undefined
}

function isWanted(
  context: ReadContext,
  work: WorkRecord,
  { capability, min_reward = 0, eligible_for }: PayloadRequest['filter'],
): boolean {
  if (capability !== undefined && work.capabilities?.includes(String(capability)) !== true) return false
  if ((work.reward?.amount ?? 0) < Number(min_reward)) return false
  if (eligible_for === undefined) return true
  const identity = String(eligible_for)
  if (work.requester?.id === identity || work.reviewer?.id === identity) return false
  return work.eligibility !== 'first_work' || !hasWorked(context, identity)
}

/** Has the identity ever had a work accepted, as the public list tells? */
function hasWorked(context: ReadContext, identity: string): boolean {
  const args = { target: identity, kind: 'accepted', limit: 200 }
  const found = worksReads['work.list'](context, { op: 'work.list', args, reader: identity })
  if (!found.ok) return false
  const { works } = dataOf(found)
  return works.some(({ worker }) => worker?.id === identity)
}

function person({ id, handle }: Person): Person {
  return { id, ...(handle === undefined ? {} : { handle }) }
}
