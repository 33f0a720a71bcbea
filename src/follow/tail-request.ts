/** Parses a request that opens a tail: its query, and what its read token gives access to. */

import { fields } from '../../actors/kernel/fields.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { faultOf } from '../command/check.ts'
import type { Exchange } from '../http/port.ts'
import { parseQuery, unknownParameter } from '../http/query.ts'
import type { BackfillRequest } from './backfill.ts'

export type TailRules = {
  /** The room and reader of a read token, or why it is not accepted. */
  readonly openToken: (text: string) => Opened | string
  readonly lastMax: number
}

/** The room that a read token opens, its reader, and the key that signed the request for it. */
type Opened = { readonly room: string; readonly reader: string; readonly key: string }

/** `sinceName`: where `since` was given. `key`: as in the token, or ''. `shut`: why the token is not accepted here; undefined if there is none, or it is valid. */
export type Asked = BackfillRequest & {
  readonly sinceName: 'since' | 'Last-Event-ID'
  readonly key: string
  readonly shut: string | undefined
}

const lastDefault = 5
const parameters = ['last', 'since', 'format', 'token']

export function askedOf(exchange: Exchange, room: string, { lastMax, openToken }: TailRules): Asked | Refusal {
  const fault = faultOf('room', fields.room, room)
  if (fault !== undefined) return fault
  const query = parseQuery(exchange.query, 1_024)
  if ('code' in query) return query
  for (const name of query.keys()) {
    if (!parameters.includes(name)) return unknownParameter('/tail/{room}', parameters, name)
  }
  const last = query.get('last') ?? String(lastDefault)
  if (!/^(0|[1-9][0-9]{0,2})$/.test(last) || Number(last) > lastMax)
    return refusal('invalid_field', `last must be an integer from 0 to ${lastMax}`, 'last')
  const sse = exchange.header('accept')?.includes('text/event-stream') === true
  const format = query.get('format') ?? 'block'
  if (format !== 'line' && format !== 'block')
    return refusal('invalid_field', 'format must be line, or left out', 'format')
  // An EventSource reconnects to its original address; its current position is in the header.
  const lastSeen = sse ? (exchange.header('last-event-id') ?? '') : ''
  const since = lastSeen === '' ? (query.get('since') ?? '') : lastSeen
  const sinceName = lastSeen === '' ? 'since' : 'Last-Event-ID'
  if (since !== '') {
    const wrong = faultOf(sinceName, fields.event_id, since)
    if (wrong !== undefined) return wrong
  }
  const token = query.get('token')
  // A token that opens nothing here counts as none. It is mentioned only if the room is private, since a public room needs none.
  const none: Asked = {
    room,
    format: sse ? 'sse' : format,
    last: Number(last),
    since,
    sinceName,
    after: 0,
    reader: '',
    key: '',
    shut: undefined,
  }
  if (token === undefined) return none
  const opened = openToken(token)
  if (typeof opened === 'string') return { ...none, shut: opened }
  if (opened.room !== room) return { ...none, shut: 'this token is for another room' }
  return { ...none, reader: opened.reader, key: opened.key }
}
