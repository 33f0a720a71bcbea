/** Invariants of tools: the last write is shown, withdrawn listings are not found, and no command calls or probes twice. */
import { isDeepStrictEqual } from 'node:util'
import { dayOf } from '../../actors/kernel/day.ts'
import { identityLimits } from '../../actors/tool-calls/tool-calls.ts'
import { microsOf } from '../../src/money/price.ts'
import { dayLimits } from '../../src/tool-calls/reads.ts'
import { must, walletMicros } from './board.ts'
import type { Ask } from './checks.ts'
import { type HostRequest, wellKnownPath } from './hosts.ts'
import type { Model, Reply, Review, Sent, Tool } from './model.ts'
import { type Payment, priceMax } from './payments.ts'
import type { Fields, Person } from './people.ts'
import { commonWord } from './tool-acts.ts'

/** All calls come from one network, which has this many times what an identity has. */
const networkTimes = 3
const secondsOfCheck = 60

/** Checks a request to a host. */
export function checkRequest({ host, path, call, payment, isDemand }: HostRequest, model: Model, now: number): void {
  if (path === wellKnownPath) {
    const known = model.hostOf(host)
    known.probes++
    known.days.add(dayOf(now))
  }
  if (call === undefined) return
  if (payment !== undefined) return checkPayment(call, payment, model)
  must(!model.visits.has(call), 'a tool was called twice for one command')
  model.visits.add(call)
  if (isDemand) model.demanded.add(call)
}

/**
 * It is the only one for its call. The operator, who named the payee, has allowed what it charges, and the caller that and the fee.
 */
function checkPayment(call: string, payment: Payment, model: Model): void {
  must(model.demanded.has(call), 'a call was paid without a demand')
  const known = model.payments.get(call)
  must(known === undefined || known.payment.header === payment.header, 'a call was paid with two payments')
  if (known !== undefined) return
  const all = [...model.sent.values()]
  const sent = all.find(
    ({ fields }) => fields.operation === 'tools.call' && String(fields.data).includes(JSON.stringify(call)),
  )
  must(sent !== undefined, 'a payment was sent for a call that nobody sent')
  const { by, fields } = sent
  model.payments.set(call, { by, payment })
  const { max_price: most } = JSON.parse(String(fields.data)) as { readonly max_price?: string }
  must(most === undefined || payment.micros <= microsOf(most)!, 'more was paid for a call than its caller allows')
  const isAllowed = all.some(({ fields: { operation, target, data }, standing }) => {
    if (operation !== 'tools.relay' || target !== fields.target || standing === 'refused') return false
    const { max_price = '', payees = [] } = JSON.parse(String(data)) as Relay
    return payees.includes(payment.payee) && payment.amount <= (microsOf(max_price) ?? 0)
  })
  must(isAllowed, 'a payment was sent that the operator has not allowed')
}

type Relay = { readonly max_price?: string; readonly payees?: readonly string[] }

type ListingView = {
  readonly tool: {
    readonly name: string
    readonly description: string
    readonly owner?: string
    readonly subject_id: string
  }
  readonly index: { readonly listed: boolean }
  readonly probe?: { readonly opt_out: boolean }
}

export async function checkTools(model: Model, ask: Ask, now: number): Promise<void> {
  const found = await searched(ask)
  for (const tool of model.tools.values()) {
    const { ok, data } = await ask({ operation: 'tools.get', target: tool.id })
    must(ok, 'an acknowledged listing is not found')
    checkListing(tool, data as unknown as ListingView, model, found.has(tool.id))
    checkProbes(tool.host, model)
  }
  checkWallet(model)
  for (const subject of new Set(model.reviews.map((each) => each.subject))) await checkReviews(subject, model, ask)
  await checkAllowances(model, ask, now)
}

function checkListing(
  { name, description, owner, host, isWithdrawn }: Tool,
  { tool, index, probe }: ListingView,
  model: Model,
  isFound: boolean,
): void {
  const isAsWritten = tool.name === name && tool.description === description && tool.owner === owner?.id
  must(isAsWritten, 'a listing is not shown in its newest version')
  must(index.listed === isFound, 'a listing is found and says that it is not, or the other way round')
  must(!(isWithdrawn && isFound), 'a withdrawn listing was found')
  must(probe?.opt_out !== true || !isFound, 'a listing is found whose host wants to be in no directory')
  const mayBeAway = model.hostOf(host).hasOptedOut || (owner !== undefined && model.everSuspended.has(owner))
  must(isWithdrawn || isFound || mayBeAway, 'a listing is not found that nobody took out')
}

/** Ids of all listings that a search finds, in pages. */
async function searched(ask: Ask): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  for (let cursor = ''; ; ) {
    const fields = { operation: 'tools.search', query: commonWord, limit: 3, ...(cursor === '' ? {} : { cursor }) }
    const { ok, data } = await ask(fields)
    must(ok, 'a search for tools is refused')
    const { results, next_cursor: next } = data as unknown as {
      readonly results: readonly { readonly id: string }[]
      readonly next_cursor: string
    }
    for (const { id } of results) {
      must(!found.has(id), 'a search finds a listing twice')
      found.add(id)
    }
    if (next === '') return found
    cursor = next
  }
}

/** A host is asked once for each command, and once a day if it has named an owner. */
function checkProbes(host: string, model: Model): void {
  const { named, probes, days } = model.hostOf(host)
  const here = [...model.tools.values()].filter((each) => each.host === host).map(({ id }) => id)
  const requested = [...model.sent.values()].filter(
    ({ fields, standing }) =>
      fields.operation === 'tools.probe' && standing !== 'refused' && here.includes(String(fields.target)),
  )
  const unasked = named.size === 0 ? 0 : here.length * days.size
  must(probes <= requested.length + unasked, 'a host was probed more often than requested')
}

type ReviewView = Pick<Review, 'kind' | 'text'> & { readonly event_id: string; readonly author: string }

/** The newest review of each author counts, unless it may be gone; then the one before may count, or none. */
async function checkReviews(subject: string, model: Model, ask: Ask): Promise<void> {
  const written = [...model.reviews]
    .filter((each) => each.subject === subject)
    .sort((one, other) => other.seq - one.seq)
  const { ok, data } = await ask({ operation: 'tools.reviews', target: subject, limit: 50 })
  must(ok, 'reviews are not told')
  const { reviews } = data as unknown as { readonly reviews: readonly ReviewView[] }
  for (const { author, event_id: id, kind, text } of reviews) {
    const known = written.find((each) => each.id === id)
    must(known?.by.id === author && known.kind === kind && known.text === text, 'a review is not as it was written')
    const newer = written.filter((each) => each.by.id === author && each.seq > known.seq)
    must(
      newer.every((each) => model.mayBeRemoved(each.id)),
      'a review counts that is not the newest',
    )
  }
  for (const [author, own] of Map.groupBy(written, ({ by }) => by.id))
    must(
      model.mayBeRemoved(own[0]!.id) || reviews.some((each) => each.author === author),
      'an acknowledged review is gone',
    )
}

/** What sellers have collected of the payments of a day is within the limit of the wallet. */
function checkWallet({ network }: Model): void {
  for (const own of Map.groupBy(network.collected, ({ signedAt }) => dayOf(signedAt)).values())
    must(
      own.reduce((sum, { micros }) => sum + micros, 0) <= walletMicros,
      'the wallet has paid more in a day than the operator allows',
    )
}

function sumOf(payments: readonly { readonly payment: Payment }[]): number {
  return payments.reduce((sum, { payment: { micros } }) => sum + micros, 0)
}

/** What is left of a day is the full allowance without the calls made. */
async function checkAllowances(model: Model, ask: Ask, now: number): Promise<void> {
  const { calls: each, micros: microsEach } = identityLimits(dayLimits)
  const today = model.calls.filter(({ at, counts }) => dayOf(at) === dayOf(now) && counts !== false)
  const left = (calls: Model['calls'], by: string) => {
    const own = calls.filter((call) => call.by.id === by).length
    return Math.max(0, Math.min(each - own, networkTimes * each - calls.length))
  }
  // The day may end before the last answer.
  if (dayOf(now + secondsOfCheck) !== dayOf(now)) return
  const certain = today.filter(({ counts }) => counts === true)
  const payments = [...model.payments.values()].filter(
    ({ by, payment: { signedAt } }) => by !== model.operator && dayOf(signedAt) === dayOf(now),
  )
  const collected = payments.filter(({ payment: { nonce } }) => model.network.hasCollected(nonce))
  const microsLeft = (some: typeof payments, unknown: number, by: Person) => {
    const all = sumOf(some) + unknown * priceMax
    const own = sumOf(some.filter((each) => each.by === by)) + unknown * priceMax
    return Math.min(microsEach - own, networkTimes * microsEach - all)
  }
  const unknown = model.calls.filter(({ at, mayHavePaid }) => mayHavePaid && dayOf(at) === dayOf(now)).length
  for (const person of model.people) {
    const { ok, data } = await ask({ operation: 'quota.get' }, person)
    // A suspended identity is refused.
    if (!ok) continue
    const { tools } = data!.quota as { readonly tools: { readonly left: number; readonly price_left: string } }
    const isSo = tools.left <= left(certain, person.id) && tools.left >= left(today, person.id)
    must(isSo, 'the remaining daily allowance does not match the calls made')
    const micros = microsOf(tools.price_left)!
    const most = microsLeft(collected, 0, person)
    must(most >= 0, 'more was paid for the calls of a day than the allowance')
    must(micros <= most, 'the remaining daily allowance is more than what is unpaid')
    must(micros >= microsLeft(payments, unknown, person), 'the remaining daily allowance is less than what is unpaid')
  }
}

/** The answer to a repeated command differs. `ageSeconds`: of the first answer. */
export function answersDiffer({ fields, reply }: Sent, again: Reply, ageSeconds: number): boolean {
  const [first, second] = [reply?.data, again.data]
  // Its outcome was not known yet, or has expired.
  if (first?.failure === 'unknown' && first.output_expired === undefined) return false
  if (second?.output_expired === true && ageSeconds > outcomeKeptSeconds) return false
  const names = answeredAlike[fields.operation] ?? []
  return names.some((name) => !isDeepStrictEqual(first?.[name], second?.[name]))
}

/** How long the outcome of a call is certainly stored. */
const outcomeKeptSeconds = 170_000
const answeredAlike: Readonly<Record<Fields['operation'], readonly string[]>> = {
  'tools.publish': ['tool'],
  'tools.update': ['tool'],
  'tools.withdraw': ['tool'],
  'tools.import': ['imported'],
  'tools.call': ['tool', 'status', 'failure', 'output'],
}
