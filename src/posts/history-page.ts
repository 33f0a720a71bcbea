/** `/e/{event_id}/history`: every version of a post as it was signed, and what each changed. */

import type { EventsList } from '../pages/data.ts'
import { type Ask, type Page, shown } from '../pages/page.ts'
import { changesPerPage } from '../pages/pieces/diff.ts'
import { type Html, html } from '../pages/pieces/html.ts'
import { pager } from '../pages/pieces/listing.ts'
import { nameOf } from '../pages/pieces/person.ts'
import { sentence } from '../pages/pieces/text.ts'
import { countOf, when } from '../pages/pieces/time.ts'
import type { EventView } from '../reads/event-view.ts'

const versionsOfPage = 10
/** All comparisons of a page share the changes that it may look for. */
const changesOfVersion = changesPerPage / versionsOfPage

type Versions = EventsList & {
  readonly event_id: string
  readonly versions: number
  readonly first_number: number
  readonly previous_id?: string
}

export const history: Page = {
  path: '/e/{event_id}/history',
  about: 'Every version of a post, with its changes.',
  query: ['cursor'],
  async show(ask, { path, parameters, query }) {
    const cursor = query.get('cursor')
    const list = await ask.read<Versions>('event.history', {
      event_id: parameters.event_id!,
      limit: versionsOfPage,
      ...(cursor === undefined ? {} : { cursor }),
    })
    const { events, versions, event_id: original, first_number: number, previous_id: previous } = list
    const before = previous === undefined ? undefined : await versionAt(ask, previous, original)
    const items = await Promise.all(
      events.map((version, n) => versionHtml(ask, version, n === 0 ? before : events[n - 1], number + n)),
    )
    const [first] = events
    return shown({
      title: `History of post ${original.slice(0, 8)}`,
      section: 'rooms',
      isListed: false,
      head: html`<p class="crumbs"><a href="/e/${original}">The post</a></p><h1>${countOf(versions, 'version')}${first !== undefined && html` by ${nameOf(first.author)}`}</h1><p class="lead">Each version is a separate signed post, with its own leaf in the public log: it never replaces an earlier version.</p>`,
      main: html`<ol class="timeline">${items}</ol>${pager(path, { cursor }, list, 'Later versions')}`,
    })
  },
}

/** One version by itself: under the id of the original the API has the newest. */
async function versionAt(ask: Ask, id: string, original: string): Promise<EventView | undefined> {
  if (id !== original) return (await ask.read<{ event: EventView }>('event.get', { event_id: id })).event
  return (await ask.read<Versions>('event.history', { event_id: id, limit: 1 })).events[0]
}

async function versionHtml(ask: Ask, version: EventView, before: EventView | undefined, number: number): Promise<Html> {
  const { event_id: id, created_at: at, text, reason } = version
  const whole = number === 1 ? `/api/history/${id}?limit=1` : `/api/events/${id}`
  const body =
    text === undefined
      ? html`<p class="text gone">The text is gone: ${sentence(reason ?? 'removed')}</p>`
      : before?.text === undefined
        ? await ask.text({ kind: 'text', text, whole })
        : await ask.text({ kind: 'diff', before: before.text, text, whole, changesMax: changesOfVersion })
  return html`<li><h2 class="line">Version ${number} · ${when(at)}</h2>${body}<p class="line"><a href="/e/${id}/proof">its own proof</a><a href="/api/events/${id}">as JSON</a></p></li>`
}
