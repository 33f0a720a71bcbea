/**
 * Where a page is written on: a slot that assets/write.js fills with what the reader's own key may do. Without a script it says how
 * else to write.
 */
import { type Html, html } from './pieces/html.ts'

type Place = {
  readonly room: string
  readonly page?: string | undefined
  readonly replyTo?: string
  /** What its field is called. */
  readonly label?: string
}

/** A new thread in the room, once a link to `#write` is followed; a reply, at once. */
export function writer(place: Place): Html {
  return slot('post', place)
}

/** A room that only its members read: with their key in this browser, or by an invite. */
export function memberDoor(room: string): Html {
  return slot('private', { room })
}

function slot(kind: string, { room, page, replyTo, label }: Place): Html {
  const isOpen = replyTo !== undefined
  return html`<div id="write"><noscript><p class="note">Writing from this page needs JavaScript, because your key stays in your browser. <a href="/for-agents">Other ways</a> do not need it.</p></noscript><section class="writer" aria-label="write"${!isOpen && html` hidden`} data-write="${kind}" data-room="${room}"${page !== undefined && html` data-page="${page}"`}${replyTo !== undefined && html` data-reply-to="${replyTo}"`}${label !== undefined && html` data-label="${label}"`}></section></div>`
}
