/**
 * Makes one probe of a tool, with requests that anyone could make, and records exactly what was seen.
 *
 *   /.well-known/broadside.json of the host   who owns it ("owners"), and whether it declines to be in any directory ("opt_out")
 *   the tool itself, unpaid                   whether it answers, and which payment it demands
 *
 * The tool is probed only for its publisher, an owner of its host, or the operator; all others learn only what the host says
 * about them. The daily round probes on behalf of an owner, who remains one until the host says otherwise. It probes nothing on
 * another host: in a requested probe, that host is first asked for its own confirmation, for any caller. Nothing is paid, no
 * redirect is followed, and the response is only stored as data; of a daily probe, little is stored.
 */

import type { ProbeVerdict } from '../../actors/tools/kinds.ts'
import type { Listing } from '../../actors/tools/listing.ts'
import type { ProbedFacts } from '../../actors/tools/tools.ts'
import { foreignJson } from '../format/foreign-json.ts'
import type { Answered, NotAnswered, OutgoingRequest } from '../outgoing/request.ts'
import { challengesOf, requestIn } from '../payments/mpp.ts'
import { type Fields, x402DemandOf } from '../payments/x402.ts'
import { billionthsOf, networkName, plainPrice } from './prices.ts'

type ProbeContext = {
  readonly request: (request: OutgoingRequest) => Promise<Answered | NotAnswered>
  /** Waits between two requests to one host. */
  readonly pause: () => Promise<void>
}

/**
 * Whether the tool may be probed. `given`: whatever the host says about the caller. `standing`: unless it says that they are
 * not an owner. `asked`: if it says that they are one.
 */
export type Permission = 'given' | 'standing' | 'asked'

type Subject = {
  readonly listing: Listing
  /** The caller. */
  readonly identity: string
  readonly permission: Permission
  /** Whom the last probe would have had to pay; '' if unknown. */
  readonly payeeBefore: string
}

/** The terms of a demand for payment. */
type Offer = {
  readonly protocol: string
  readonly network: string
  readonly amount: string
  /** Decimal dollars, if the unit is known. */
  readonly price?: string
  readonly pay_to: string
}

type Seen = Pick<ProbedFacts, 'isOwner' | 'optOut' | 'verdict' | 'isGood' | 'mismatch' | 'saw'>

const wellKnownBytesMax = 65_536
const answerBytesMax = 262_144
/** Characters of a body and of a header that are stored, for a requested probe and for a daily one. */
const keptCharactersMax = { asked: 2_000, unasked: 200 } as const
const times = { connectMs: 5_000, totalMs: 10_000 } as const

export async function probeTool({ request, pause }: ProbeContext, subject: Subject): Promise<Seen> {
  const { listing, identity, permission, payeeBefore } = subject
  const address = wellKnownOf(listing)
  const asked = await request({ url: address, answerBytesMax: wellKnownBytesMax, ...times })
  const { isOwner, optOut } = ownersIn(asked, identity)
  const most = permission === 'standing' ? keptCharactersMax.unasked : keptCharactersMax.asked
  const well_known = { url: address, ...shown(asked, most) }
  const unseen = { isOwner, optOut, verdict: 'not_probed', isGood: false, mismatch: [] } as const
  if (optOut === true) return { ...unseen, saw: { well_known, tool: 'not probed: its host has "opt_out": true' } }
  const mayProbe = permission === 'given' || (permission === 'standing' ? isOwner !== false : isOwner === true)
  if (!mayProbe)
    return { ...unseen, saw: { well_known, tool: `not probed: put {"owners":["${identity}"]} there first` } }
  const sent = requestOf(listing)
  if (!isAt(listing, new URL(address).hostname)) {
    // What one host says about itself does not permit probing another.
    await pause()
    const other = wellKnownOf({ url: sent.url, mcp_url: '' })
    const there = ownersIn(await request({ url: other, answerBytesMax: wellKnownBytesMax, ...times }), identity)
    if (there.optOut === true)
      return { ...unseen, saw: { well_known, tool: `not probed: ${other} has "opt_out": true` } }
    if (permission !== 'given' && there.isOwner !== true)
      return { ...unseen, saw: { well_known, tool: `not probed: put {"owners":["${identity}"]} at ${other} first` } }
  }
  await pause()
  const answer = await request({ ...sent, answerBytesMax, ...times })
  const offers = answer.ok && answer.status === 402 ? offersOf(answer) : []
  const verdict = verdictOf(listing, answer, offers)
  const mismatch = verdict === 'valid_402' ? mismatchOf(listing, offers, payeeBefore) : []
  const tool = { request: { method: sent.method, url: sent.url }, ...shown(answer, most), offers }
  const isGood = verdict === 'valid_402' || verdict === 'ok'
  return { isOwner, optOut, verdict, isGood, mismatch, saw: { well_known, tool } }
}

/** Always the HTTPS port: a user of another port on the machine does not speak for it. Plain HTTP is only possible on loopback. */
function wellKnownOf({ url, mcp_url }: Pick<Listing, 'url' | 'mcp_url'>): string {
  const { protocol, origin, hostname } = new URL(URL.canParse(url) ? url : mcp_url)
  return `${protocol === 'http:' ? origin : `https://${hostname}`}/.well-known/broadside.json`
}

/** Undefined if the host could not say. */
function ownersIn(
  answer: Answered | NotAnswered,
  identity: string,
): { readonly isOwner: boolean | undefined; readonly optOut: boolean | undefined } {
  const unknown = { isOwner: undefined, optOut: undefined }
  if (!answer.ok || answer.status >= 500 || answer.status === 429) return unknown
  if (answer.status < 200 || answer.status > 299) return { isOwner: false, optOut: false }
  const { owners, opt_out } = (foreignJson(answer.body.toString('utf8')) ?? {}) as Fields
  return { isOwner: Array.isArray(owners) && owners.includes(identity), optOut: opt_out === true }
}

/** Whether the tool itself is on this host: an MCP server may be on another host than the service it belongs to. */
export function isAt(listing: Listing, host: string): boolean {
  const { url } = requestOf(listing)
  return !URL.canParse(url) || new URL(url).hostname === host
}

type Sent = OutgoingRequest & { readonly method: string }

function requestOf({ kind, url, mcp_url, method }: Listing): Sent {
  const accept = { accept: 'application/json, text/event-stream, */*' }
  if (kind === 'mcp' && mcp_url !== '') {
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'broadside-lab', version: '1' },
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    return { url: mcp_url, method: 'POST', body, headers: { ...accept, 'content-type': 'application/json' } }
  }
  if (method === '' || method === 'GET' || method === 'HEAD') return { url, method: method || 'GET', headers: accept }
  return { url, method, body: '{}', headers: { ...accept, 'content-type': 'application/json' } }
}

function verdictOf(
  { price, protocols }: Listing,
  answer: Answered | NotAnswered,
  offers: readonly Offer[],
): ProbeVerdict {
  if (!answer.ok) return 'unreachable'
  const { status } = answer
  const isFree = price === '0' || protocols.every((each) => each === 'mcp')
  if (status === 402)
    return offers.length > 0 && offers.every(({ pay_to, amount }) => pay_to !== '' && amount !== '')
      ? 'valid_402'
      : 'degraded'
  if (isFree) return (status >= 200 && status < 300) || isOtherMcp(answer) ? 'ok' : 'degraded'
  return 'not_x402'
}

/** An MCP server that supports only newer versions says which. */
function isOtherMcp({ status, body }: Answered): boolean {
  const { error } = (foreignJson(body.toString('utf8')) ?? {}) as { error?: { code?: unknown; data?: Fields } }
  return status === 400 && error?.code === -32_022 && Array.isArray(error.data?.supported)
}

function offersOf(answer: Answered): Offer[] {
  const accepts = x402DemandOf(answer)?.accepts ?? []
  return [
    ...accepts.map((accept) => {
      const amount = text(accept.amount) || text(accept.maxAmountRequired)
      const price = /usd/i.test(text((accept.extra as Fields | undefined)?.name)) ? dollars(amount) : undefined
      return offer('x402', networkName(text(accept.network)), amount, price, text(accept.payTo))
    }),
    ...challengesOf(answer).map((challenge) => {
      const { amount, recipient, currency } = requestIn(challenge) ?? {}
      const units = typeof amount === 'number' ? String(amount) : text(amount)
      // On Tempo, every currency is a dollar with six decimal places.
      const price = challenge.method === 'tempo' && currency !== undefined ? dollars(units) : undefined
      return offer(`mpp/${challenge.method}`, challenge.method, units, price, text(recipient))
    }),
  ]
}

function offer(protocol: string, network: string, amount: string, price: string | undefined, payTo: string): Offer {
  return { protocol, network, amount, ...(price === undefined ? {} : { price }), pay_to: payTo }
}

function dollars(amount: string): string | undefined {
  return /^\d{1,15}$/.test(amount) ? plainPrice(`${amount}e-6`) : undefined
}

/** Differences between what the tool itself says and what its listing says, or an earlier probe saw. */
function mismatchOf(listing: Listing, offers: readonly Offer[], payeeBefore: string): string[] {
  const found: string[] = []
  const prices = [...new Set(offers.flatMap(({ price }) => price ?? []))]
  const listed = listing.price === '' ? undefined : billionthsOf(listing.price)
  if (listed !== undefined && prices.length > 0 && !prices.some((price) => billionthsOf(price) === listed))
    found.push(`it asks $${prices.join(' or $')} and is listed at $${listing.price}`)
  const networks = [...new Set(offers.map(({ network }) => network))]
  if (listing.network !== '' && !networks.includes(networkName(listing.network)))
    found.push(`it is paid on ${networks.join(', ')} and listed on ${listing.network}`)
  const payees = [...new Set(offers.map(({ pay_to }) => pay_to))]
  if (payeeBefore !== '' && !payees.includes(payeeBefore))
    found.push(`it is paid to ${payees.join(', ')}, and to ${payeeBefore} at the last probe`)
  return found.map((each) => each.slice(0, 300))
}

/** The response, in the form that is stored. */
function shown(answer: Answered | NotAnswered, most: number): Fields {
  if (!answer.ok) {
    const { failure, reason, status } = answer
    return { failure, reason, ...(status === undefined ? {} : { status }) }
  }
  const { status, headers, body } = answer
  const kept = ['content-type', 'payment-required', 'www-authenticate', 'retry-after', 'server']
  const all = kept.flatMap((name) => {
    const value = headers[name]?.join(', ')
    return value === undefined ? [] : [[name, value.slice(0, most)] as const]
  })
  // Bytes that are not UTF-8 are shown anyway: this is for people who look for what went wrong.
  return {
    status,
    headers: Object.fromEntries(all),
    bytes: body.length,
    body: body.toString('utf8').slice(0, most).toWellFormed(),
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 200) : ''
}
