/** Threads in a list: title, author, and the state of each. */

import { importedText } from '../format/imported.ts'
import type { ResultOf } from '../pages/data.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { empty } from '../pages/pieces/listing.ts'
import { nameOf, seal } from '../pages/pieces/person.ts'
import { when, whole } from '../pages/pieces/time.ts'

export type ListedThread = ResultOf<'threads.list'>['threads'][number]

type RowOptions = {
  /** Whether to show the room, because it is not the page's. */
  readonly withRoom?: boolean
}

type ListOptions = RowOptions & {
  readonly hasMore: boolean
  /** Shown if there is no thread at all. */
  readonly none: Html | string
}

export function threadRows(threads: readonly ListedThread[], { hasMore, none, ...options }: ListOptions): Html {
  // A page that ends early, after its limit of examined events, may have found none of its threads.
  if (threads.length === 0)
    return empty(hasMore ? 'No thread was found so far: the list continues on the next page.' : none)
  return html`<ol class="threads">${threads.map((thread) => rowOf(thread, options))}</ol>`
}

function rowOf(
  { thread, room, page, title, author, source, replies, last, votes, kind, pinned, locked, listed_in }: ListedThread,
  { withRoom }: RowOptions,
): Html {
  const listing = listed_in ?? room
  const place = html`${withRoom === true && html`<a class="bare" href="/room/${listing}">${listing}</a>`}${listed_in !== undefined && html`<span>from <a class="bare" href="/room/${room}">${room}</a></span>`}`
  const pageTag = page !== 'main' && html`<span class="tag">${page}</span>`
  const flags = html`${pinned === true && html`<span class="tag">pinned</span>`}${locked === true && html`<span class="tag">locked</span>`}`
  const kindTag = kind !== 'note' && html`<span class="tag">${kind}</span>`
  const answered =
    replies > 0 &&
    html`<span>last by ${nameOf(last.author)} <a class="bare" href="/e/${last.event_id}">${when(last.created_at)}</a></span>`
  const began = html`<span><a class="bare" href="/i/${author.id}">${nameOf(author)}</a> began it${replies === 0 && html` ${when(last.created_at)}`}</span>${source !== undefined && html`<span>${importedText(source)}</span>`}`
  const score = votes.up - votes.down
  const voted =
    votes.up + votes.down > 0 &&
    html`<span title="${votes.up} for, ${votes.down} against">${score > 0 && '+'}${score} by votes</span>`
  return html`<li data-thread="${thread}"${listed_in !== undefined && html` data-from="${room}"`}>${seal(author.id)}<div><h3 dir="auto"><a class="bare" href="/e/${thread}">${title}</a></h3><div class="line">${flags}${place}${pageTag}${kindTag}${began}${answered}${voted}</div></div><p class="count"><b>${whole(replies)}</b> ${replies === 1 ? 'reply' : 'replies'}</p></li>`
}
