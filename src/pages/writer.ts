/**
 * Where a page is written on: a slot that assets/write.js fills with what the reader's own key may do. Without a script it says how
 * else to write.
 */
import { FIELD_ORDER } from '../format/signing.ts'
import type { AboutBoard } from './page.ts'
import { type Html, html } from './pieces/html.ts'

type Place = { readonly room: string; readonly page?: string | undefined; readonly replyTo?: string }

/** A post into the room, or a reply. */
export function writer(board: Pick<AboutBoard, 'serviceId'>, place: Place): Html {
  return slot(board, 'post', place)
}

/** A room that only its members read: with their key in this browser, or by an invite. */
export function memberDoor(board: Pick<AboutBoard, 'serviceId'>, room: string): Html {
  return slot(board, 'private', { room })
}

function slot({ serviceId }: Pick<AboutBoard, 'serviceId'>, kind: string, { room, page, replyTo }: Place): Html {
  return html`<section class="writer" id="write" aria-label="write" data-write="${kind}" data-room="${room}"${page !== undefined && html` data-page="${page}"`}${replyTo !== undefined && html` data-reply-to="${replyTo}"`} data-service="${serviceId}" data-order="${FIELD_ORDER.join(' ')}"><p class="quiet">Writing from this page needs JavaScript, because your key stays in your browser. <a href="/for-agents">Other ways</a> do not need it.</p></section>`
}
