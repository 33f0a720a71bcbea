/** How writes to the tools directory are carried out: listings by `@tools`, reviews by the room `reviews`. */

import { sizes } from '../../actors/kernel/limits.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { hostIn, type ImportArgs, type PublishArgs, type UpdateArgs } from '../../actors/tools/decide.ts'
import { subjectOf } from '../../actors/tools/listing.ts'
import { reviewsRoom, toolsActor } from '../../actors/tools/tools.ts'
import { writerOf } from '../command/charging.ts'
import { isOperator } from '../command/dispatch.ts'
import { type Decided, idOf, type Plan, type ReadPlans, type Shown } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { dataOf } from '../reads/read.ts'
import { noSubject } from './ask-index.ts'
import { toolPath } from './path.ts'

/** Parts of a listing, as they were sent. */
type Given = { readonly url?: string; readonly input_schema?: unknown }

const directory = () => ({ actor: toolsActor })
const target = ({ command }: { readonly command: { readonly target: string } }) => command.target

const publish: Plan<'tools.publish'> = {
  to: directory,
  check: ({ data }) => listingFault(data),
  args: ({ data }): PublishArgs => ({
    name: data.name,
    host: hostIn(data),
    listingsMax: sizes.tools_per_identity,
  }),
  show: written,
}

const update: Plan<'tools.update'> = {
  to: directory,
  check: ({ data }) => listingFault(data),
  args: (verified): UpdateArgs => ({
    target: target(verified),
    host: hostIn(verified.data),
  }),
  show: written,
}

const withdraw: Plan<'tools.withdraw'> = {
  to: directory,
  args: (verified) => ({ target: target(verified) }),
  show: (_verified, { facts }) => ({ values: { tool: { id: facts.id, withdrawn: true } } }),
}

const importRows: Plan<'tools.import'> = {
  to: directory,
  unmetered: ({ signer }, { operators }) => isOperator(signer, operators),
  args: ({ data }) => ({ rows: data.rows }) as ImportArgs,
  show: ({ data }, { facts }) => {
    const { applied, unchanged, kept } = facts
    const rows = data.rows
    // In a retry by request_id the rows are the same: only nonce and time may differ.
    const stayed = kept.map(([row, why]) => ({ id: rows[row]!.id, why }))
    return { values: { imported: { applied: applied.length, unchanged, kept: stayed } } }
  },
}

/** The post that a review becomes is decided by its room; whether the tool exists is known to the directory. */
const review: Plan<'tools.review'> = {
  to: () => ({ actor: reviewsRoom }),
  ask: ({ command, signer }, doors, pass) => {
    const subject = command.target
    doors.read({ op: 'tools.subject', args: { subject }, reader: signer.id }, (found) => {
      if (found === undefined) return pass(undefined)
      if (!found.ok) return pass({ refusal: 'refusal' in found ? found.refusal : found.absent })
      const { tools } = dataOf(found)
      const { code, message } = noSubject(subject)
      // The actor returns the refusal, so that a retry is still a retry.
      pass({ args: tools.length > 0 ? {} : { barred: [code, message] } })
    })
  },
  onAccepted: ({ command, signer, source }, _decided, { tools }) =>
    tools.reviewed(command.target, signer.id, source.address),
  show: (verified, decided) => ({ read: 'event.made', args: { event_id: idOf(verified, decided) } }),
}

/** The actor records the request; then the tool is probed, and the result is the answer. */
const probe: Plan<'tools.probe'> = {
  to: directory,
  args: (verified) => ({ target: target(verified) }),
  ask: (verified, { throttle, operators, limitsOn }, pass) => {
    const charge = throttle.take('probes', writerOf(verified, operators))
    if (charge.full !== undefined) return pass({ refusal: throttle.refusalOf(charge) })
    pass({
      args: { gapSeconds: limitsOn ? probeGapSeconds : 0 },
      // A refused or repeated request did not cause a probe.
      settle: (answer) => {
        if (answer !== undefined && (!answer.ok || answer.duplicate)) charge.giveBack()
      },
    })
  },
  show: (verified, decided, _actor, isDuplicate, _args, { tools }) => ({
    later: (give) => tools.answer(verified, decided, isDuplicate, give),
  }),
}

/** One host is probed this often at most, for all callers together. */
const probeGapSeconds = 60

export const toolsPlans = {
  'tools.review': review,
  'tools.publish': publish,
  'tools.update': update,
  'tools.withdraw': withdraw,
  'tools.import': importRows,
  'tools.probe': probe,
}

function listingFault({ url = '', input_schema }: Given): Refusal | undefined {
  if (!isPlainAddress(url))
    return refusal('invalid_field', '"url" in data must be an http(s) address without user or password', 'data.url')
  const isObject = typeof input_schema === 'object' && input_schema !== null && !Array.isArray(input_schema)
  if (input_schema !== undefined && !isObject)
    return refusal('invalid_field', '"input_schema" in data must be a JSON Schema: an object', 'data.input_schema')
  return undefined
}

function isPlainAddress(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { username, password, hostname } = new URL(url)
  return username === '' && password === '' && hostname !== ''
}

/** The current listing. Its owner learns how to verify it. */
function written(
  verified: Verified<'tools.publish' | 'tools.update'>,
  decided: Decided<'tools.publish' | 'tools.update'>,
): Shown {
  const { id, verified: isVerified } = decided.facts
  const { url = '', mcp_url = '' } = verified.data
  const host = hostIn({ url, mcp_url })
  const verify = `Put {"owners":["${verified.signer.id}"]} at https://${host}/.well-known/broadside.json, then call tools.probe.`
  return {
    values: {
      tool: {
        id,
        subject_id: subjectOf({ id, type: 'service', service: '', url, mcp_url }),
        url: toolPath(id),
        verified: isVerified,
        ...(isVerified ? {} : { verify }),
      },
    },
  }
}

/** Which listings are due is known to the actor that decides all of them. */
export const toolsReadPlans = {
  'tools.due': { actor: () => toolsActor },
} satisfies ReadPlans
