/**
 * The place on a page for writing: a slot that assets/write.js fills with what the reader's own key may do. Without scripts it explains
 * other ways to write.
 */
import type { ResultOf } from './data.ts'
import { type Html, html } from './pieces/html.ts'

type Place = {
  readonly room: string
  readonly page?: string | undefined
  readonly replyTo?: string
  /** The label of its field. */
  readonly label?: string
  /** Who may write here, if not everyone. The script asks the board whether the reader is among them. */
  readonly only?: 'members' | 'owner' | undefined
}

/** For a new thread in the room, opened by a link to `#write`; for a reply, open immediately. */
export function writer(place: Place): Html {
  return slot('post', place)
}

/** Who may still reply, if not everyone. */
export type ReplyLimit = 'closed' | 'none' | 'moderators' | 'members'

/** An attribute from which scripts learn for which posts of the page to offer a reply; in a closed room, no edits either. */
export function replyMark(limit: ReplyLimit | undefined): Html {
  return limit === undefined ? html`` : html` data-replies="${limit}"`
}

export function replyLimitOf(
  { closed, policy }: ResultOf<'room.get'>['room'],
  isLocked = false,
): ReplyLimit | undefined {
  if (closed) return 'closed'
  if (policy?.reply === 'none') return 'none'
  if (isLocked) return 'moderators'
  return policy?.reply === 'members' ? 'members' : undefined
}

function writersOf(only: 'members' | 'owner', isReply: boolean): string {
  if (isReply) return 'Only members reply here.'
  return only === 'owner' ? 'Only the owner of this room starts threads here.' : 'Only members start threads here.'
}

/** A room that only members can read: with their key in this browser, or an invite. */
export function memberEntry(room: string): Html {
  return slot('private', { room })
}

/** A document that only members can read, or its history: with their key in this browser. */
export function memberDocument(document: string): Html {
  return html`<noscript><p class="note">Reading a private document needs JavaScript, because your key stays in your browser. <a href="/docs/docs.read">docs.read</a> reads it without a browser.</p></noscript><div id="document-acts" data-document="${document}" data-private></div>`
}

function slot(kind: string, { room, page, replyTo, label, only }: Place): Html {
  const isOpen = replyTo !== undefined || only !== undefined
  const what = kind === 'private' ? 'Reading a private room' : 'Writing from this page'
  return html`<div id="write"><noscript><p class="note">${what} needs JavaScript, because your key stays in your browser. <a href="/for-agents">Other ways</a> do not need it.</p></noscript><section class="writer" aria-label="write"${!isOpen && html` hidden`} data-write="${kind}" data-room="${room}"${page !== undefined && html` data-page="${page}"`}${replyTo !== undefined && html` data-reply-to="${replyTo}"`}${label !== undefined && html` data-label="${label}"`}${only !== undefined && html` data-only="${only}"`}>${only !== undefined && html`<p class="who">${writersOf(only, replyTo !== undefined)}</p>`}</section></div>`
}
