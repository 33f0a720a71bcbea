/**
 * Forecasts, before an import begins, how long the board's limits will make it take. It reads the file once, and queries what this client's
 * network has left.
 */
import { type BoardClient, type Capabilities, Refused } from './client.ts'
import { CommandFailed } from './command-line.ts'
import { textBytesMax } from './corpus.ts'
import type { ImportState } from './import-state.ts'
import type { MessageSource } from './message-source.ts'
import { durationText, grouped } from './terminal.ts'

/** One allowance in the board's answer to quota.get. */
type Allowance = { readonly remaining?: number; readonly regained?: number; readonly per_seconds: number }
type Network = { readonly network: string; readonly allowances: Readonly<Record<string, Allowance>> }

type Needs = {
  readonly posts: number
  /** Texts and the bytes signed with them. */
  readonly bytes: number
  readonly authors: number
  readonly rooms: number
  readonly mostPostsOfOne: number
  readonly mostBytesOfOne: number
}

/** Signed bytes in addition to a text: field names, key, nonce, request id. */
const signedBytes = 420
/** A shorter delay is not mentioned. */
const secondsMin = 30

type ForecastOptions = {
  readonly client: BoardClient
  readonly capabilities: Capabilities
  readonly source: MessageSource
  readonly state: ImportState
}

/** Undefined if there is nothing worth mentioning. */
export async function importForecast(options: ForecastOptions): Promise<string | undefined> {
  const { client, capabilities, source } = options
  const limits = (capabilities.all.limits ?? {}) as Readonly<Record<string, number | null | undefined>>
  // A pipe cannot be read twice, an older board counts no networks, and a board without limits causes no delay.
  const isCounted = Object.entries(limits).some(([name, value]) => name.includes('_per_network_') && value !== null)
  if (!isCounted || !source.isRepeatable) return undefined
  const networks = await networksOf(client)
  const needs = await needsOf(options)
  const ofIdentity = (rate: string, burst = rate, seconds = 60): Allowance => ({
    ...(typeof limits[burst] === 'number' ? { remaining: limits[burst] } : {}),
    ...(typeof limits[rate] === 'number' ? { regained: limits[rate] } : {}),
    per_seconds: seconds,
  })
  const perMinute = ofIdentity('writes_per_identity_per_minute', 'writes_per_identity_burst')
  const perDay = ofIdentity('bytes_per_identity_per_day', 'bytes_per_identity_per_day', 86_400)
  const waits = [
    wait(`${grouped(needs.mostPostsOfOne)} posts by one author`, needs.mostPostsOfOne, perMinute),
    wait(`${grouped(needs.mostBytesOfOne)} bytes by one author`, needs.mostBytesOfOne, perDay),
    ...networks.flatMap(({ network, allowances }) => [
      wait(`${grouped(needs.posts)} posts from ${network}`, needs.posts, allowances.writes),
      wait(`${grouped(needs.bytes)} bytes from ${network}`, needs.bytes, allowances.bytes),
      wait(`${grouped(needs.authors)} new identities from ${network}`, needs.authors, allowances.new_identities),
      wait(`${grouped(needs.rooms)} rooms, if none exists yet, from ${network}`, needs.rooms, allowances.rooms),
    ]),
  ]
  const longest = waits.reduce((most, each) => (each.seconds > most.seconds ? each : most))
  if (longest.seconds < secondsMin) return undefined
  return (
    `The limits of this board make the import take at least ${durationText(longest.seconds)}: ${longest.what}, and ${longest.pace}. ` +
    'Its operator can raise them temporarily (limits.grant with your address or network as target); a board of your own can be ' +
    'started with BROADSIDE_LIMITS=off.'
  )
}

async function networksOf(client: BoardClient): Promise<readonly Network[]> {
  try {
    const { quota } = await client.command(Buffer.from('{"operation":"quota.get"}'))
    return (quota as { networks?: readonly Network[] }).networks ?? []
  } catch (error) {
    // The quota request itself may be rate-limited; the import continues without a forecast.
    if (error instanceof Refused) return []
    throw error
  }
}

/** What of the file is still to be posted. */
async function needsOf({ source, state }: ForecastOptions): Promise<Needs> {
  const posted = new Set<string>()
  const left = new Map<string, { posts: number; bytes: number }>()
  const rooms = new Set<string>()
  const roomsThere = new Set<string>()
  try {
    for await (const { line } of source.entries()) {
      const message = line.ok ? line.message : undefined
      if (message === undefined || message.textBytes > textBytesMax) continue
      if (state.eventIdOf(message.id) !== undefined) {
        posted.add(message.author)
        roomsThere.add(message.room)
        continue
      }
      const found = left.get(message.author) ?? { posts: 0, bytes: 0 }
      left.set(message.author, {
        posts: found.posts + 1,
        bytes: found.bytes + message.textBytes + signedBytes,
      })
      rooms.add(message.room)
    }
  } catch (error) {
    // A truncated file: the import itself reports it after posting what is there.
    if (!(error instanceof CommandFailed)) throw error
  }
  const all = [...left.values()]
  const sum = (of: (each: { posts: number; bytes: number }) => number) =>
    all.reduce((total, each) => total + of(each), 0)
  const most = (of: (each: { posts: number; bytes: number }) => number) =>
    all.reduce((max, each) => Math.max(max, of(each)), 0)
  return {
    posts: sum(({ posts }) => posts),
    bytes: sum(({ bytes }) => bytes),
    authors: [...left.keys()].filter((author) => !posted.has(author)).length,
    rooms: [...rooms].filter((room) => !roomsThere.has(room)).length,
    mostPostsOfOne: most(({ posts }) => posts),
    mostBytesOfOne: most(({ bytes }) => bytes),
  }
}

function wait(what: string, needed: number, allowance: Allowance | undefined) {
  const { remaining, regained, per_seconds: per = 1 } = allowance ?? { per_seconds: 1 }
  if (remaining === undefined || regained === undefined) return { what, seconds: 0, pace: '' }
  const seconds = Math.max(0, ((needed - remaining) * per) / regained)
  const span = per === 60 ? 'a minute' : per === 3_600 ? 'an hour' : 'a day'
  return { what, seconds, pace: `${grouped(regained)} ${span} are allowed` }
}
