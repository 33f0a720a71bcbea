/** Reads on credits. The market's shard answers all of them, because only it knows what private works move. */

import { refusal } from '../../actors/kernel/refusals.ts'
import { commandSha, fromFrame } from '../../actors/records/record.ts'
import { balanceOf, unrecordedPostings } from '../../actors/works/market/credits.ts'
import { user } from '../../actors/works/market/ledger.ts'
import { isOfMarket, type Posting } from '../../actors/works/market/letters.ts'
import {
  badCursor,
  type KnownAnswer,
  known,
  limitOf,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  readable,
  refused,
} from '../reads/read.ts'
import { transferView } from './reads.ts'

export const creditsReads = { 'credit.balance': balance, 'credit.history': history } satisfies Reads

/** Accounts without an owner, which anyone may view. */
const publicAccounts: ReadonlySet<string> = new Set(['mint', 'rewards'])
const identity = /^[0-9a-f]{64}$/

function balance({ state, now }: ReadContext, { args, reader, operator }: ReadRequest): ReadAnswer {
  const target = String(args.target ?? reader)
  if (reader === '') return refused(refusal('unsigned', 'sign the command to see your balance'))
  if (target !== reader && operator !== true)
    return refused(refusal('forbidden', 'only an operator can read the balance of another identity', 'target'))
  return ok(balanceOf(state.market, identity.test(target) ? user(target) : target, now()), { until: now() })
}

type Entry = Posting & { readonly work?: string; readonly command?: string }

function history(context: ReadContext, { args, reader, operator }: ReadRequest): ReadAnswer {
  const { state, now } = context
  const target = String(args.target ?? reader)
  if (target === '') return refused(refusal('unsigned', 'sign the command to see your own, or name mint or rewards'))
  const isOwn = target === reader
  if (!isOwn && !publicAccounts.has(target) && operator !== true)
    return refused(
      refusal(
        'forbidden',
        'you can read your own entries and those of mint and rewards; an operator can read all',
        'target',
      ),
    )
  const name = identity.test(target) ? user(target) : target
  const list = `credit.history:${name}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const limit = limitOf(args)
  const entries: Entry[] = cursor.from === undefined ? dueEntries(context, name).slice(0, limit) : []
  const places = state.market.ledger.places(name)
  const from = cursor.from ?? places.length * postingsMax - 1
  let place = Math.floor(from / postingsMax)
  let newest = from % postingsMax
  let next: number | undefined
  let unreadable = 0
  for (; place >= 0 && next === undefined; place--, newest = postingsMax - 1) {
    const within = readable(context, () => entriesAt(context, places[place]!, name))
    if (within === undefined) {
      unreadable++
      continue
    }
    for (let n = Math.min(newest, within.length - 1); n >= 0 && next === undefined; n--) {
      if (entries.length === limit) next = place * postingsMax + n
      else entries.push(within[n]!)
    }
  }
  // What a private room paid for is only its members' business.
  const mayName = (work: string) => isOwn || state.market.find(work)?.is_public === true
  const shown = entries.map((entry) => entryView(entry, mayName))
  return ok(
    { entries: shown, ...(unreadable === 0 ? {} : { unreadable }), ...paging(context, list, next) },
    { until: now() },
  )
}

/** Upper bound for postings of one act that concern one account. */
const postingsMax = 16

function dueEntries({ state, now }: ReadContext, name: string): Entry[] {
  return unrecordedPostings(state.market, now())
    .filter((posting) => concerns(posting, name))
    .reverse()
}

/** The postings of an act that concern an account, in order. */
function entriesAt({ frame }: ReadContext, seq: number, name: string): Entry[] {
  const record = fromFrame(frame(0, seq))
  if (!isOfMarket(record)) throw new Error(`record ${seq} is not an act of the market`)
  const { facts, by } = record
  const { work, steps = [], postings = [] } = facts
  const command = by === undefined ? undefined : commandSha(by).toString('hex')
  return [...steps.flatMap((step) => step.postings), ...postings]
    .filter((posting) => concerns(posting, name))
    .map((posting) => ({
      ...posting,
      ...(work === undefined ? {} : { work }),
      ...(command === undefined ? {} : { command }),
    }))
}

/** For simulated works, users see only their own postings: the shared accounts would reveal practice in private rooms. */
function concerns({ debit, credit, ledger }: Posting, name: string): boolean {
  return (debit === name || credit === name) && (ledger === 1 || name.startsWith('user:'))
}

function entryView(entry: Entry, mayName: (work: string) => boolean) {
  const { transfer, ...moved } = transferView(entry)
  return {
    transfer,
    at: entry.at,
    ...moved,
    ...(entry.ledger === 2 ? { simulated: true } : {}),
    ...(entry.work === undefined || mayName(entry.work) ? causeOf(entry) : {}),
  }
}

/** The hash of a command that created a work begins with the id of the work. */
function causeOf({ work, command }: Entry) {
  return {
    ...(work === undefined ? {} : { work_id: work }),
    ...(command === undefined ? {} : { command_sha256: command }),
  }
}

/** Used by the board at its start: who has recently posted in public for the first time and has no welcome grant. */
export const welcomeReads = { 'credit.unwelcomed': unwelcomed } satisfies Reads

/** First posts within `seconds` before the newest event; older ones are not searched. */
function unwelcomed(
  { state, board }: ReadContext,
  { args }: ReadRequest,
): KnownAnswer<{ identities: readonly string[] }> {
  const { events, authors } = board
  const since = events.newestAt - Number(args.seconds)
  const identities = new Set<string>()
  for (let slot = events.count - 1; slot >= 0 && events.at(slot) >= since; slot--) {
    const author = authors.at(events.author(slot))
    const isFirst = events.at(author.events.at(0)) >= since
    if (isFirst && !state.market.given.welcomed.has(author.id)) identities.add(author.id)
  }
  return known({ identities: [...identities] })
}
