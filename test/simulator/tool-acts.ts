/** What people do with tools: they list them, change and withdraw listings, review them, have them probed, and call them. */
import { createHash } from 'node:crypto'
import { reviewKinds } from '../../actors/tools/kinds.ts'
import { reviewsRoom } from '../../actors/tools/tools.ts'
import { priceOf } from '../../src/money/price.ts'
import type { SeededRandom } from '../support/seeded-random.ts'
import { type Act, type Command, data, type Kind, recordPost, someone } from './acts.ts'
import { must } from './board.ts'
import { mcpPath } from './hosts.ts'
import type { Model, Sent, Tool } from './model.ts'
import { priceMax, priceStep, termsOf } from './payments.ts'
import type { Person } from './people.ts'

const toolsMax = 8
/** Ids of imported listings. */
const importedIds = ['list:one', 'list:two', 'list:three']
/** Every description has this word: a search for it finds all listings. */
export const commonWord = 'simulated'

const listingWrites: ReadonlySet<unknown> = new Set(['tools.update', 'tools.withdraw', 'tools.import'])

/** A write in flight may change it: the last value is known only for writes that follow each other. */
function isBusy({ sent }: Model, { id, owner }: Tool): boolean {
  for (const { standing, fields } of sent.values()) {
    if (standing !== 'open' && standing !== 'doubtful') continue
    const isMeant = fields.target === id || (fields.operation === 'tools.import' && owner === undefined)
    if (listingWrites.has(fields.operation) && isMeant) return true
  }
  return false
}

function toolFor(model: Model, chance: SeededRandom, fits: (tool: Tool) => boolean = () => true): Tool | undefined {
  return chance.pick([...model.tools.values()].filter(fits))
}

/** Its publisher, and everybody its host has ever named. */
function mayChange(model: Model, { owner, host }: Tool, person: Person): boolean {
  return person === owner || model.hostOf(host).named.has(person)
}

function listingFields(host: string, isMcp: boolean, chance: SeededRandom, step: number) {
  const address = `https://${host}`
  return {
    name: `tool ${step}`,
    description: `${commonWord} work ${step}`.padEnd(20 + chance.below(200), 'x'),
    url: `${address}/call`,
    category: 'work',
    ...listedPrice(host, chance),
    ...(isMcp ? { mcp_url: `${address}${mcpPath}`, protocols: ['mcp'] } : {}),
  }
}

/** What the listing says of the price: nothing, the truth, or too little. */
function listedPrice(host: string, chance: SeededRandom): { readonly price?: string } {
  const terms = termsOf(host)
  const what = chance.below(6)
  if (terms === undefined || what < 2) return {}
  return { price: what === 2 ? '0' : what === 3 ? priceOf(Math.floor(terms.amount / 2)) : priceOf(terms.amount) }
}

type ListingView = { readonly id: string; readonly subject_id: string; readonly verified: boolean }

function checkVerified({ verified }: ListingView, by: Person, host: string, model: Model): void {
  must(!verified || model.hostOf(host).named.has(by), 'an owner counts as verified whom the host never named')
}

const publish: Act = (model, chance, step) => {
  if (model.tools.size >= toolsMax) return undefined
  const by = someone(model, chance)
  const host = chance.below(4) === 0 ? toolFor(model, chance)?.host : undefined
  const isMcp = chance.below(4) === 0
  const at = host ?? `tool-${step}.example`
  const { name, description, ...more } = listingFields(at, isMcp, chance, step)
  return {
    by,
    fields: { operation: 'tools.publish', data: data({ name, description, ...more }) },
    onAccepted: (answer, known) => {
      const tool = answer.tool as ListingView
      checkVerified(tool, by, at, known)
      const { id, subject_id: subject } = tool
      known.tools.set(id, {
        id,
        subject,
        host: at,
        isMcp,
        owner: by,
        name,
        description,
        isWithdrawn: false,
        isBarred: false,
        version: 1,
      })
    },
  }
}

/** A person who may change the tool, or, one time in four, anyone at all. */
function pickEditor(model: Model, tool: Tool, chance: SeededRandom): Person | undefined {
  if (chance.below(4) === 0) return someone(model, chance)
  return chance.pick(model.people.filter((each) => mayChange(model, tool, each)))
}

const update: Act = (model, chance, step) => {
  const tool = toolFor(model, chance, (each) => !isBusy(model, each))
  const by = tool && pickEditor(model, tool, chance)
  if (tool === undefined || by === undefined) return undefined
  const { name, description, ...more } = listingFields(tool.host, tool.isMcp, chance, step)
  const fields = { operation: 'tools.update', target: tool.id, data: data({ name, description, ...more }) }
  if (!mayChange(model, tool, by))
    return { by, fields, refusedAs: ['forbidden'], holds: () => !mayChange(model, tool, by) }
  // An identity named by a host owns it once the board has asked the host.
  if (tool.isBarred)
    return { by, fields, refusedAs: by === tool.owner ? ['wrong_state'] : ['wrong_state', 'forbidden'] }
  return {
    by,
    fields,
    onAccepted: (answer, known) => {
      checkVerified(answer.tool as ListingView, by, tool.host, known)
      Object.assign(tool, { owner: by, name, description, isWithdrawn: false, version: tool.version + 1 })
    },
  }
}

const withdraw: Act = (model, chance) => {
  const tool = toolFor(model, chance, (each) => !isBusy(model, each))
  const by = tool && (chance.below(4) === 0 ? model.operator : pickEditor(model, tool, chance))
  if (tool === undefined || by === undefined) return undefined
  const fields = { operation: 'tools.withdraw', target: tool.id }
  const mayNot = () => by !== model.operator && !mayChange(model, tool, by)
  if (tool.isWithdrawn) return { by, fields, refusedAs: ['wrong_state'] }
  if (mayNot()) return { by, fields, refusedAs: ['forbidden'], holds: mayNot }
  return {
    by,
    fields,
    onAccepted: () => {
      tool.isWithdrawn = true
      tool.isBarred = !mayChange(model, tool, by)
      tool.version++
    },
  }
}

type Imported = { readonly kept: readonly { readonly id: string }[] }

const importList: Act = (model, chance, step) => {
  const all = importedIds.map((id) => model.tools.get(id))
  const isUnderWay = [...model.sent.values()].some(
    ({ standing, fields }) => fields.operation === 'tools.import' && (standing === 'open' || standing === 'doubtful'),
  )
  if (isUnderWay || all.some((tool) => tool !== undefined && isBusy(model, tool))) return undefined
  const rows = importedIds.slice(chance.below(importedIds.length)).map((id, at) => {
    const host = `${id.replace(':', '-')}.example`
    return {
      ...listingFields(host, false, chance, step),
      name: `row ${at} of ${step}`,
      id,
      type: 'service',
      kind: 'http',
    }
  })
  const fields = { operation: 'tools.import', data: data({ rows: rows.map((row) => ({ ...row, source: 'a list' })) }) }
  if (chance.below(5) === 0) return { by: chance.pick(model.people.slice(1))!, fields, refusedAs: ['forbidden'] }
  return {
    by: model.operator,
    fields,
    onAccepted: ({ imported }, { tools }) => {
      const kept = new Set((imported as Imported).kept.map(({ id }) => id))
      for (const { id, name, description, url } of rows) {
        if (kept.has(id)) continue
        const known = tools.get(id)
        if (known !== undefined) Object.assign(known, { name, description })
        else {
          const { hostname: host } = new URL(url)
          const of = {
            subject: undefined,
            isMcp: false,
            owner: undefined,
            isWithdrawn: false,
            isBarred: false,
            version: 1,
          }
          tools.set(id, { id, host, name, description, ...of })
        }
      }
    },
  }
}

const review: Act = (model, chance, step) => {
  const by = someone(model, chance)
  const tool = toolFor(model, chance, ({ subject, isWithdrawn }) => subject !== undefined && !isWithdrawn)
  const kind = chance.pick(reviewKinds)!
  const text = `${kind}, as seen at ${step}`
  const fields = { operation: 'tools.review', kind, text }
  if (tool?.subject === undefined)
    return { by, fields: { ...fields, target: 's_0123456789abcdef' }, refusedAs: ['not_found'] }
  const { subject } = tool
  const recorded = recordPost(by, reviewsRoom, text)
  return {
    by,
    fields: { ...fields, target: subject },
    onAccepted: (answer, known) => {
      recorded?.(answer, known)
      const { event_id: id, seq } = (answer.event ?? {}) as { event_id?: string; seq?: number }
      if (id !== undefined && seq !== undefined) known.reviews.push({ id, subject, by, kind, text, seq })
    },
  }
}

type Probe = { readonly verdict: string; readonly verified: boolean; readonly opt_out: boolean }

const probe: Act = (model, chance) => {
  const tool = toolFor(model, chance)
  if (tool === undefined) return undefined
  const by = chance.below(3) === 0 ? someone(model, chance) : (tool.owner ?? model.operator)
  const mayLook = (known: Model) => by === known.operator || mayChange(known, tool, by)
  const mayLookNow = mayLook(model)
  return {
    by,
    fields: { operation: 'tools.probe', target: tool.id },
    onAccepted: (answer, known) => {
      const { verdict, verified, opt_out: isOut } = answer.probe as Probe
      const { named, hasOptedOut } = known.hostOf(tool.host)
      must(!verified || named.has(by), 'a probe found an owner whom the host never named')
      must(!isOut || hasOptedOut, 'a probe found that a host is out which never said so')
      must(
        verdict === 'not_probed' || mayLookNow || mayLook(known),
        'a tool was probed for somebody who may not ask it',
      )
    },
  }
}

/** The wallet may pay for a tool what its host charges, or no longer. */
const relay: Act = (model, chance) => {
  const isLeft = chance.below(4) > 0
  const tool = toolFor(
    model,
    chance,
    ({ id, host }) => termsOf(host) !== undefined && !(isLeft && model.relayed.has(id)),
  )
  const terms = tool && termsOf(tool.host)
  if (tool === undefined || terms === undefined) return undefined
  const { amount, payee } = terms
  const most = chance.below(4) === 0 ? Math.floor(amount / 2) : amount + chance.below(3) * priceStep
  const ends = chance.below(8) === 0
  const more = ends ? { relay: false } : { relay: true, max_price: priceOf(most), payees: [payee] }
  const fields = { operation: 'tools.relay', target: tool.id, data: data(more) }
  if (chance.below(8) === 0) return { by: chance.pick(model.people.slice(1))!, fields, refusedAs: ['forbidden'] }
  return {
    by: model.operator,
    fields,
    onAccepted: (_answer, { relayed }) => {
      if (ends) relayed.delete(tool.id)
      else relayed.add(tool.id)
    },
  }
}

/** What an answer tells of a call. */
type CallResult = {
  readonly status: number
  readonly failure?: string
  readonly output_expired?: true
  readonly output_encoding?: string
  readonly output?: { readonly call?: unknown }
  readonly payment_needed?: object
  readonly receipt?: { readonly accepted_at: number; readonly transaction?: string }
}

/** With these a request is not sent, or did not leave. */
const unsent: ReadonlySet<unknown> = new Set(['refused', 'circuit_open', 'blocked'])

function recordCall(by: Person, tool: Tool, word: string): Sent['onAccepted'] {
  return (answer, { calls, visits, demanded, payments, network }) => {
    const {
      status,
      failure,
      output,
      output_encoding: encoding,
      output_expired: isOver,
      payment_needed: needed,
      receipt,
    } = answer as CallResult
    const wasCalled = visits.has(word)
    const wasOnlyAsked = demanded.has(word) && !payments.has(word)
    must(!unsent.has(failure) || !wasCalled || wasOnlyAsked, 'a tool was called, and the answer says that it was not')
    must(status === 0 || tool.isMcp || wasCalled, 'an answer of a tool is shown that was not called')
    if (status === 200 && encoding === 'json')
      must(output?.call === word || tool.isMcp, 'a call has the answer of another')
    const isUnknown = failure === 'unknown'
    // A call that would have to be paid first is given back.
    const wasMade = failure === undefined && needed === undefined
    const counts = isUnknown && isOver === undefined ? undefined : wasMade || isUnknown
    const { transaction } = receipt!
    must(transaction === undefined || network.hasCollected(transaction), 'a call names a payment that nobody collected')
    calls.push({ by, at: receipt!.accepted_at, counts, mayHavePaid: isUnknown })
  }
}

/** `word`: unique to this call. `most`: millionths of a dollar that it may cost. */
export function callOf(tool: Tool, by: Person, word: string, most?: number): Command {
  const limit = most === undefined ? {} : { max_price: priceOf(most) }
  const more = { ...(tool.isMcp ? { method: 'work', body: { call: word } } : { query: { call: word } }), ...limit }
  const fields = { operation: 'tools.call', target: tool.id, data: data(more) }
  return { by, fields, onAccepted: recordCall(by, tool, word) }
}

const call: Act = (model, chance, step) => {
  const isForSale = chance.below(3) > 0 && model.relayed.size > 0
  const tool = toolFor(model, chance, ({ id }) => !isForSale || model.relayed.has(id))
  if (tool === undefined) return undefined
  const most = chance.below(3) === 0 ? chance.below(priceMax) : undefined
  // So few that some use up their allowance.
  const by = isForSale ? chance.pick(model.people.slice(0, 4))! : someone(model, chance)
  const made = callOf(tool, by, `call ${step}`, most)
  const { isWithdrawn, version } = tool
  if (!isWithdrawn || isBusy(model, tool)) return made
  return { ...made, refusedAs: ['not_found'], holds: () => tool.version === version && !isBusy(model, tool) }
}

const callOwn: Act = (model, chance, step): Command => {
  const text = `text ${step}`
  const hex = createHash('sha256').update(text).digest('hex')
  return {
    by: someone(model, chance),
    fields: { operation: 'tools.call', target: 'broadside:hash', data: data({ body: { text } }) },
    onAccepted: ({ output }) =>
      must((output as { hex: string }).hex === hex, 'a tool of the board answers something else'),
  }
}

/** By name, with their relative frequencies. */
export const toolActs: Readonly<Record<string, Kind>> = {
  'list a tool': { weight: 20, act: publish },
  'change a listing': { weight: 12, act: update },
  'withdraw a listing': { weight: 4, act: withdraw },
  'import a list': { weight: 3, act: importList },
  'review a tool': { weight: 8, act: review },
  'have a tool probed': { weight: 4, act: probe },
  'let the wallet pay for a tool': { weight: 20, act: relay },
  'call a tool': { weight: 60, act: call },
  'call a tool of the board': { weight: 2, act: callOwn },
}
