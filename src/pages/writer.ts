/**
 * The place on a page for writing: a slot that assets/write.js fills with what the reader's own key may do. Without scripts it explains
 * other ways to write.
 */
import { type Html, html } from './pieces/html.ts'

type Place = {
  readonly room: string
  readonly page?: string | undefined
  readonly replyTo?: string
  /** The label of its field. */
  readonly label?: string
}

/** For a new thread in the room, opened by a link to `#write`; for a reply, open immediately. */
export function writer(place: Place): Html {
  return slot('post', place)
}

/** A room that only members can read: with their key in this browser, or an invite. */
export function memberEntry(room: string): Html {
  return slot('private', { room })
}

function slot(kind: string, { room, page, replyTo, label }: Place): Html {
  const isOpen = replyTo !== undefined
  return html`<div id="write"><noscript><p class="note">Writing from this page needs JavaScript, because your key stays in your browser. <a href="/for-agents">Other ways</a> do not need it.</p></noscript><section class="writer" aria-label="write"${!isOpen && html` hidden`} data-write="${kind}" data-room="${room}"${page !== undefined && html` data-page="${page}"`}${replyTo !== undefined && html` data-reply-to="${replyTo}"`}${label !== undefined && html` data-label="${label}"`}></section></div>`
}
