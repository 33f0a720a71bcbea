/** `/search`: searches words in public posts, by room, kind and author. */

import { type Ask, type Page, Refused, shown } from '../pages/page.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { empty, pager } from '../pages/pieces/listing.ts'
import { countOf } from '../pages/pieces/time.ts'
import { postsHtml } from '../pages/post.ts'

const names = ['q', 'room', 'kind', 'author', 'cursor'] as const
type Asked = Partial<Record<(typeof names)[number], string>>

export const search: Page = {
  path: '/search',
  about: 'Search public posts.',
  query: names,
  alsoCalled: { q: 'query' },
  isSearch: true,
  async show(ask, { query }) {
    const asked: Asked = Object.fromEntries(query)
    const { q, room, kind, author } = asked
    return shown({
      title: q === undefined ? 'Search' : `Search: ${q}`,
      isListed: false,
      section: 'rooms',
      head: html`<h1>Search</h1>`,
      main: html`<form class="filters" role="search" action="/search" aria-label="Search posts">
<label class="wide">Words<input type="search" name="q" value="${q ?? ''}" maxlength="256"></label>
<label>Room<input type="text" name="room" value="${room ?? ''}" maxlength="64" size="12"></label>
<label>Kind<input type="text" name="kind" value="${kind ?? ''}" maxlength="64" size="10"></label>
<label>Author (handle or id)<input type="text" name="author" value="${author ?? ''}" maxlength="64" size="14"></label>
<button type="submit">Search</button></form>
${await found(ask, asked)}`,
      aside: html`<section><h2>Search syntax</h2><p>All words must occur, in any English form: <code>fox</code> finds foxes. <code>"two words"</code> are matched exactly as a phrase, <code>-word</code> must not occur, <code>word*</code> is a prefix of at least two letters. <code>from:alice</code>, <code>room:lobby</code> and <code>kind:request</code> filter by author, room and kind, <code>after:2026-01-31</code> and <code>before:2026-01-31</code> by day in UTC.</p><p>Newest first. Hidden and expired posts are never found.</p></section>`,
    })
  },
}

async function found(ask: Ask, asked: Asked): Promise<Html> {
  const { q, room, kind, author, cursor } = asked
  if (q === undefined) return empty('Enter words to search for.')
  try {
    const target = author === undefined ? undefined : await identityOf(ask, author)
    const list = await ask.read('events.list', {
      query: q,
      limit: 30,
      ...(room === undefined ? {} : { room }),
      ...(kind === undefined ? {} : { kind }),
      ...(target === undefined ? {} : { target }),
      ...(cursor === undefined ? {} : { cursor }),
    })
    const note = list.indexing && indexingNote(list.indexing)
    if (list.events.length === 0 && list.next_cursor === undefined) return note ?? empty('No public posts match.')
    return html`${note}<h2 class="unseen">Posts found</h2><div class="posts">${await postsHtml(ask, list.events, { isListed: true, withRoom: true, withPage: true })}</div>${pager('/search', asked, list)}`
  } catch (error) {
    // A mistake in the form is reported next to it, where it can be corrected.
    if (!(error instanceof Refused) || error.refusal.field === 'cursor') throw error
    return html`<p class="note" role="alert">${error.refusal.message}.</p>`
  }
}

function indexingNote({ percent, seconds }: { readonly percent: number; readonly seconds: number }): Html {
  const minutes = Math.ceil(seconds / 60)
  const wait = seconds < 90 ? countOf(seconds, 'second') : countOf(minutes, 'minute')
  return html`<p class="note" role="status">The search index is being built. It has ${percent} % of all posts, the oldest first. Try again in about ${wait}.</p>`
}

async function identityOf(ask: Ask, author: string): Promise<string> {
  const target = author.replace(/^@/, '')
  return (await ask.read('identity.get', { target })).identity.id
}
