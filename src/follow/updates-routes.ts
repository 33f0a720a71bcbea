/** GET /api/updates: public updates, immediately or after a wait. GET /time: the board's clock. */

import { updateKinds, updatesGet } from '../../actors/follow/operations.ts'
import { fields } from '../../actors/kernel/fields.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import { namesOf } from '../../actors/kernel/operation.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { faultOf } from '../command/check.ts'
import { readReply } from '../command/reply.ts'
import { nearest } from '../format/nearest.ts'
import type { Exchange, RouteHandler } from '../http/port.ts'
import { namedTwice, parameterNamed, parseQuery, unknownParameter } from '../http/query.ts'
import type { Replies } from '../http/replies.ts'
import type { Throttle } from '../rates/throttle.ts'
import { ok } from '../reads/read.ts'
import type { Updates } from './updates.ts'
import { pollOf } from './wait-limit.ts'

type UpdatesRoutesOptions = {
  readonly updates: Pick<Updates, 'poll'>
  readonly throttle: Throttle
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
  /** Unix seconds. */
  readonly wallSeconds: () => number
}

export function updatesRoutes(options: UpdatesRoutesOptions): Readonly<Record<string, RouteHandler>> {
  return {
    '/api/updates': (exchange) => answerUpdates(options, exchange),
    '/time': (exchange) => {
      const unix = options.wallSeconds()
      const utc = new Date(unix * 1000).toISOString().replace('.000Z', 'Z')
      options.replies.send(exchange, readReply(ok({ unix, utc })))
    },
  }
}

function answerUpdates({ updates, throttle, addressOf, replies }: UpdatesRoutesOptions, exchange: Exchange): void {
  const address = addressOf(exchange)
  const asked = throttle.count('reads', { address }) ?? knownQuery(exchange.query)
  if ('code' in asked) return replies.refuse(exchange, asked)
  const source = { via: 'get', address, onGone: (callback: () => void) => exchange.onAbort(callback) }
  updates.poll(pollOf(asked, { reader: '' }, source), (reply) => replies.send(exchange, reply))
}

type Asked = {
  readonly cursor?: string
  readonly wait?: number
  readonly limit?: number
  readonly rooms?: readonly string[]
  readonly kinds?: readonly string[]
}

/** Valid queries, cached: thousands of clients that got the same answer come back with the same query. */
const known = new BoundedMap<string, Asked>(1_024)
const knownBytesMax = 512

function knownQuery(text: string): Asked | Refusal {
  const found = known.get(text)
  if (found !== undefined) return found
  const asked = readQuery(text)
  if ('code' in asked || text.length > knownBytesMax) return asked
  known.set(text, asked)
  return asked
}

const waitRule = `wait must be an integer from 0 to ${sizes.updates_wait_seconds}, in seconds`

function readQuery(text: string): Asked | Refusal {
  const query = parseQuery(text, sizes.url_query_bytes)
  if ('code' in query) return query
  const declared = updatesGet.get!.query
  for (const name of query.keys()) {
    if (parameterNamed(declared, name) !== undefined) continue
    return unknownParameter('/api/updates', declared.flatMap(namesOf), name)
  }
  if ((query.get('schema') ?? '1') !== '1') return refusal('invalid_field', 'schema must be 1', 'schema')
  const cursor = query.get('cursor')
  const rule = updatesGet.narrowed!.cursor!
  const wrong = cursor === undefined ? undefined : faultOf('cursor', rule, cursor)
  if (wrong !== undefined) return wrong
  const wait = query.get('wait')
  if (wait !== undefined && !(/^(0|[1-9][0-9]?)$/.test(wait) && Number(wait) <= sizes.updates_wait_seconds))
    return refusal('invalid_field', waitRule, 'wait')
  const limit = query.get('limit')
  const badLimit = limit === undefined ? undefined : faultOf('limit', fields.limit, integer(limit))
  if (badLimit !== undefined) return badLimit
  const rooms = roomsIn(query)
  if ('code' in rooms) return rooms
  const kinds = listed(query.get('kinds'))
  const strange = kinds.find((kind) => !updateKinds.some((each) => each === kind))
  if (strange !== undefined) {
    const meant = nearest(strange, updateKinds)
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`
    const message = `kinds must be some of ${updateKinds.join(', ')}, separated by commas${hint}`
    return refusal('invalid_field', message, 'kinds')
  }
  return {
    ...(cursor === undefined ? {} : { cursor }),
    ...(wait === undefined ? {} : { wait: Number(wait) }),
    ...(limit === undefined ? {} : { limit: Number(limit) }),
    rooms,
    kinds,
  }
}

function roomsIn(query: ReadonlyMap<string, string>): readonly string[] | Refusal {
  const declared = parameterNamed(updatesGet.get!.query, 'room')!
  const given = namesOf(declared).filter((each) => query.has(each))
  if (given.length > 1) return namedTwice(declared)
  const [name = declared.name] = given
  const rooms = listed(query.get(name))
  if (rooms.length > sizes.updates_rooms)
    return refusal('invalid_field', `${name} may name ${sizes.updates_rooms} rooms, separated by commas`, name)
  for (const room of rooms) {
    const fault = faultOf(name, fields.room, room)
    if (fault !== undefined) return fault
  }
  return rooms
}

/** An empty `room=` or `kinds=` means all. An empty cursor is refused, because the client has lost it. */
function listed(text: string | undefined): readonly string[] {
  return text === undefined || text === '' ? [] : text.split(',')
}

function integer(text: string): number | string {
  return /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : text
}
