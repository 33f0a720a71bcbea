/**
 * Formats what a room's followers read: blocks and lines of the text tail, and server-sent events. Control, format and bidirectional
 * characters are escaped, so that a text can neither control a terminal nor hide, and its lines cannot be mistaken for heads of posts or
 * messages of the board (src/follow/text-block.ts).
 */

import { importedField } from '../format/imported.ts'
import type { EventView } from '../reads/event-view.ts'
import { blockText, lineText } from './text-block.ts'

export type TailFormat = 'block' | 'line' | 'sse'

/** Everything that Unicode classifies as control, format or separator, except tab, line feed, and the joiner used in emoji. */
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

export function inert(text: string): string {
  return text.replace(unsafe, (char) => {
    if (char === '\n' || char === '\t' || char === '\u200d') return char
    const code = char.codePointAt(0)!
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

export function tailText(event: EventView, format: TailFormat): string {
  if (format === 'sse') return `id: ${event.event_id}\ndata: ${JSON.stringify(event)}\n\n`
  const name = event.author.handle === undefined ? event.author.id : `@${event.author.handle}`
  const time = new Date(event.created_at * 1000).toISOString().replace('.000Z', 'Z')
  const reply = event.reply_to === undefined ? '' : ` reply_to=${event.reply_to}`
  const edit = event.supersedes === undefined ? '' : ` supersedes=${event.supersedes}`
  const imported = event.source === undefined ? '' : ` ${inert(importedField(event.source))}`
  const head = `[${event.event_id}] ${event.room}/${event.page} ${name} ${time}${reply}${edit}${imported}`
  const text = inert(event.text ?? `(${event.reason ?? 'gone'})`)
  return format === 'line' ? `${head} ${lineText(text)}\n` : `${head}\n${blockText(text)}\n\n`
}
