/**
 * Compares what an event of an export shows with the command that its author signed.
 *
 * These follow from the command: text, to, format, the ids of attachments, kind, and what it replies to or replaces, if it says so; for a
 * post that begins a thread also room, page and thread. Everything else is the board's claim (verify.ts).
 */

import { slugPattern } from '../../actors/kernel/fields.ts'
import { operationByName } from '../../actors/operations.ts'
import { reviewsRoom } from '../../actors/tools/tools.ts'
import { isHex64 } from '../format/signing.ts'
import { dataOf, type Fields, recordOf, textOf } from './signed-line.ts'

/** An event named by an id other than the signed one; correct if `signed` is a version of `shown`. */
export type Renamed = { readonly field: string; readonly signed: string; readonly shown: string }

/** What is wrong, or the events that are named by a different one of their ids. */
type ShownCheck = { readonly problem: string } | { readonly renamed: readonly Renamed[] }

/** What the command alone says about its event; undefined fields follow from another event. */
type Made = {
  readonly kind: string
  /** The event of which it is a new version, or ''. */
  readonly supersedes: string
  readonly room?: unknown
  readonly page?: unknown
  /** Its thread: the one that it begins, or that of the event that it replaces, which began it. */
  readonly thread?: 'own' | 'original'
}

type Data = { readonly format?: unknown; readonly supersedes?: unknown; readonly source?: unknown }

const page = 'main'

/** Every operation that creates an event. */
const makers: Readonly<Record<string, (command: Fields, data: Data) => Made | undefined>> = {
  post(command, data) {
    const kind = textOf(command.kind ?? 'note')
    const supersedes = textOf(data.supersedes)
    // A version has the place of its original, and a reply the room of the post that it answers.
    if (supersedes !== '') return { kind, supersedes, room: command.room, page: command.page }
    const made = { kind, supersedes, page: command.page ?? page }
    if (command.reply_to !== undefined) return { ...made, room: command.room }
    return { ...made, room: command.room ?? 'lobby', thread: 'own' }
  },
  'work.create'({ event_id, room = 'lobby', page: named = page }) {
    // With event_id, the request is a separate post.
    return event_id === undefined ? { kind: 'request', supersedes: '', room, page: named, thread: 'own' } : undefined
  },
  'work.edit': ({ event_id }) => ({ kind: 'note', supersedes: textOf(event_id), thread: 'original' }),
  'tools.review': () => ({ kind: 'review', supersedes: '', room: reviewsRoom, page, thread: 'own' }),
  // The board chooses its room.
  'conversation.open': () => ({ kind: 'note', supersedes: '', page, thread: 'own' }),
}

export function checkShown(value: Fields, command: Fields): ShownCheck {
  const operation = textOf(command.operation)
  const data = dataOf(command)
  const made = makers[operationByName.get(operation)?.name ?? '']?.(command, data)
  if (made === undefined) return { problem: `the signed bytes are for ${operation}, which creates no event` }
  const isShownAs = (field: string, signed: unknown): boolean => (value[field] ?? '') === (signed ?? '')
  const { kind, supersedes, room, page, thread } = made
  if (!isShownAs('text', command.text)) return different('text')
  if (!isShownAs('to', command.to)) return different('to')
  const isNamed = textOf(command.to).startsWith('@')
  if (isNamed ? !isHex64(textOf(value.to_id)) : value.to_id !== undefined)
    return { problem: 'to_id is not the id of a handle that the post is addressed to' }
  if (!isShownAs('kind', kind)) return different('kind')
  if (room !== undefined && !isShownAs('room', room)) return different('room')
  if (page !== undefined && !isShownAs('page', page)) return different('page')
  if ((value.format ?? 'text') !== (data.format ?? 'text')) return different('format')
  if (!isSameSource(value.source, data.source)) return different('source')
  const isReply = supersedes === '' && command.reply_to !== undefined
  if (value.actual_page !== undefined && !(isReply && command.page === undefined && isName(value.actual_page)))
    return { problem: 'actual_page is not the page of a reply that names none' }
  const keepsKind = supersedes !== '' && command.kind === undefined
  if (value.actual_kind !== undefined && !(keepsKind && isName(value.actual_kind)))
    return { problem: 'actual_kind is not the kind of a version that names none' }
  const keepsFormat = supersedes !== '' && data.format === undefined
  if (value.actual_format !== undefined && !(keepsFormat && value.actual_format === 'markdown'))
    return { problem: 'actual_format is not the format of a version that names none' }
  if (!areAttached(value.attachments, command.attachments)) return different('attachments')
  for (const field of ['reason', 'hidden_by', 'redaction']) {
    if (value[field] !== undefined) return { problem: `it shows its text, and a ${field} as if the text were gone` }
  }
  if (thread === 'own' && value.thread !== textOf(value.command_sha256).slice(0, 32))
    return { problem: 'the thread of a post that begins one is not the post itself' }
  if (thread === 'original' && value.thread !== value.supersedes)
    return { problem: 'the thread of a request is not the request itself' }
  const renamed: Renamed[] = []
  for (const [field, signed] of [
    ['supersedes', supersedes],
    ['reply_to', textOf(command.reply_to)],
  ] as const) {
    const isLeftToOriginal = field === 'reply_to' && signed === '' && supersedes !== '' && thread === undefined
    if (isLeftToOriginal || isShownAs(field, signed)) continue
    const shown = textOf(value[field])
    if (shown === '' || signed === '') return different(field)
    renamed.push({ field, signed, shown })
  }
  return { renamed }
}

const sourceFields = ['system', 'id', 'author', 'at'] as const

function isSameSource(shown: unknown, signed: unknown): boolean {
  if (shown === undefined || signed === undefined) return shown === signed
  const [one, other] = [recordOf(shown), recordOf(signed)]
  return sourceFields.every((field) => one[field] === other[field])
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && new RegExp(slugPattern).test(value)
}

function different(field: string): ShownCheck {
  return { problem: `the ${field} shown is not the one that was signed` }
}

/** Whether exactly the signed blobs are shown, in that order. */
function areAttached(shown: unknown = [], signed: unknown = []): boolean {
  if (!Array.isArray(shown) || !Array.isArray(signed) || shown.length !== signed.length) return false
  return signed.every((id, n) => recordOf(shown[n]).id === id)
}
