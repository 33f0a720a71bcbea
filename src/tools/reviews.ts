/** Reviews of one subject of the tools directory: the verdict, the words, who wrote them. */

import type { Ask } from '../pages/page.ts'
import { type Html, html, linkTo } from '../pages/pieces/html.ts'
import { empty, leftOut } from '../pages/pieces/listing.ts'
import { person } from '../pages/pieces/person.ts'
import { when } from '../pages/pieces/time.ts'

const tones: Readonly<Record<string, string>> = { works: 'good', mixed: 'warm', down: 'bad', avoid: 'bad' }

export async function reviewsHtml(ask: Ask, target: string): Promise<Html> {
  const found = await ask.find('tools.reviews', { target, limit: 50 })
  const how = html`<p class="quiet">A review is a signed post in the room <a href="/room/reviews">reviews</a>, one of each author. <a href="/docs/tools.review">How programs write one</a>.</p>`
  if (found === undefined || (found.reviews.length === 0 && found.unreadable === undefined))
    return html`${empty('Nobody has reviewed it yet.')}${how}`
  const items = await Promise.all(
    found.reviews.map(
      async ({ event_id: id, author, author_handle: handle, kind, text, evidence, created_at: at }) =>
        html`<li><div class="by">${person({ id: author, handle })}<span class="tag ${tones[kind] ?? ''}">${kind}</span><a href="/e/${id}">${when(at)}</a></div>${await ask.text({ kind: 'text', text, whole: `/e/${id}` })}${evidence !== undefined && html`<p class="quiet">Seen at ${linkTo(evidence, evidence)}</p>`}</li>`,
    ),
  )
  return html`<ul class="rows">${items}</ul>${leftOut(found)}${how}`
}
