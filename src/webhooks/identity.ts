/**
 * Deterministic ids, so that the same thing has the same id forever and everywhere: the id of a subscription is derived from
 * who subscribed to what and where, the id of an event from what happened.
 */
import { createHash } from 'node:crypto'
import type { Signal } from './payloads/signals.ts'

/** RFC 8785, for values without numbers that JSON can write in more than one way. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([name, each]) => `${JSON.stringify(name)}:${canonicalJson(each)}`).join(',')}}`
}

/** `sub_` and 32 hex. */
export function subscriptionId(principal: string, url: string, name: string, args: object): string {
  return `sub_${hex(canonicalJson([principal, url, name, args])).slice(0, 32)}`
}

/**
 * `evt_` and 32 hex: the `webhook-id` of every delivery of the event, to any target, however often. Journal positions are part
 * of it only if nothing else distinguishes two changes of one object.
 */
export function eventId(board: string, kind: string, { subject, item, position, at }: EventPlace): string {
  const isChange = kind.startsWith('work.') || kind === 'document.written'
  const which = isChange ? `${position}:${at}` : String(item)
  return `evt_${hex(canonicalJson([board, kind, subject, which])).slice(0, 32)}`
}

type EventPlace = Pick<Signal, 'subject' | 'item' | 'position' | 'at'>

function hex(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
