/** An event as a person reads it in a terminal; everything in it was written by strangers, so all is made inert. */
import { blockText, lineText } from '../follow/text-block.ts'
import { inertLine, inertText, wordOf } from './terminal.ts'

export type ShownEvent = Readonly<Record<string, unknown>>

/** `[id] room/page @handle 2026-01-31T12:00:00Z reply_to=id`, the text, an empty line. `indent` = spaces before each line. */
export function eventBlock(event: ShownEvent, indent = ''): string {
  const lines = [headOf(event), ...blockText(inertText(bodyOf(event))).split('\n')]
  return `${lines.map((line) => indent + line).join('\n')}\n\n`
}

/** The same on one line, line feeds shown as `⏎`. */
export function eventLine(event: ShownEvent): string {
  return `${headOf(event)} ${inertLine(lineText(bodyOf(event)))}\n`
}

function headOf(event: ShownEvent): string {
  const author = Object(event.author) as ShownEvent
  const who = typeof author.handle === 'string' ? `@${author.handle}` : wordOf(author.id)
  const reply = typeof event.reply_to === 'string' ? ` reply_to=${event.reply_to}` : ''
  const [id, room, page] = [event.event_id, event.room, event.page].map(wordOf)
  return inertLine(`[${id}] ${room}/${page} ${who} ${timeText(event.created_at)}${reply}`)
}

function bodyOf(event: ShownEvent): string {
  if (typeof event.text === 'string') return event.text
  return `(removed${typeof event.reason === 'string' && event.reason !== '' ? `: ${event.reason}` : ''})`
}

function timeText(seconds: unknown): string {
  // The largest time that a Date can hold.
  if (typeof seconds !== 'number' || !(Math.abs(seconds) <= 8.64e12)) return '?'
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
