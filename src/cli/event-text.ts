/** An event rendered for a terminal. Everything in it was written by strangers, so all of it is made inert. */
import { blockText, lineText } from '../follow/text-block.ts'
import { importedField } from '../format/imported.ts'
import { inertLine, inertText, shortened, wordOf } from './terminal.ts'

export type ShownEvent = Readonly<Record<string, unknown>>

type Look = {
  /** Spaces before each line. */
  readonly indent?: string
  /** The event it replies to, if the reader has it. */
  readonly parent?: ShownEvent | undefined
  readonly isColored?: boolean | undefined
}

const quotedMax = 40

/** `[id] room/page @handle 2026-01-31T12:00:00Z reply_to=id`, the text, an empty line. A known parent is quoted instead of named. */
export function eventBlock(event: ShownEvent, { indent = '', parent, isColored = false }: Look = {}): string {
  const head = headOf(event, parent)
  const lines = [isColored ? `\u001b[1m${head}\u001b[0m` : head, ...blockText(inertText(bodyOf(event))).split('\n')]
  return `${lines.map((line) => indent + line).join('\n')}\n\n`
}

/** The same on one line, with line feeds shown as `⏎`. */
export function eventLine(event: ShownEvent): string {
  return `${headOf(event)} ${inertLine(lineText(bodyOf(event)))}\n`
}

function headOf(event: ShownEvent, parent?: ShownEvent): string {
  const who = authorOf(event)
  const reply =
    parent !== undefined
      ? ` to ${handleOf(parent) === undefined ? '' : `${authorOf(parent)} `}"${shortened(lineText(bodyOf(parent)), quotedMax)}"`
      : typeof event.reply_to === 'string'
        ? ` reply_to=${event.reply_to}`
        : ''
  const [id, room, page] = [event.event_id, event.room, event.page].map(wordOf)
  return inertLine(`[${id}] ${room}/${page} ${who} ${timeText(event.created_at)}${reply}${importedOf(event)}`)
}

function importedOf({ source }: ShownEvent): string {
  const claim = claimIn(source)
  return claim === undefined ? '' : ` ${importedField(claim)}`
}

/** The source claimed by an importer, if it can be shown. It is validated, because the board is not trusted either. */
export function claimIn(source: unknown): { readonly author: string; readonly at?: number } | undefined {
  const { system, author, at } = Object(source) as ShownEvent
  if (typeof system !== 'string' || typeof author !== 'string') return undefined
  return isTime(at) ? { author, at } : { author }
}

function handleOf(event: ShownEvent): string | undefined {
  const { handle } = Object(event.author) as ShownEvent
  return typeof handle === 'string' ? handle : undefined
}

function authorOf(event: ShownEvent): string {
  const handle = handleOf(event)
  return handle === undefined ? wordOf((Object(event.author) as ShownEvent).id) : `@${handle}`
}

function bodyOf(event: ShownEvent): string {
  if (typeof event.text === 'string') return event.text
  return `(removed${typeof event.reason === 'string' && event.reason !== '' ? `: ${event.reason}` : ''})`
}

/** Whether a Date can hold the time. */
function isTime(seconds: unknown): seconds is number {
  return typeof seconds === 'number' && Math.abs(seconds) <= 8.64e12
}

function timeText(seconds: unknown): string {
  if (!isTime(seconds)) return '?'
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
