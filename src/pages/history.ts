/** `/e/{event_id}/history`: every version of a post as it was signed, and what each changed. */
import type { EventView } from '../views/event.ts'
import type { EventsList } from './data.ts'
import { html } from './html.ts'
import { type Page, shown } from './page.ts'
import { diffHtml } from './pieces/diff.ts'
import { nameOf } from './pieces/person.ts'
import { sentence, textHtml } from './pieces/text.ts'
import { countOf, when } from './pieces/time.ts'

export const history: Page = {
  path: '/e/{event_id}/history',
  about: 'Every version of a post, and what each changed.',
  async show(ask, { parameters }) {
    const id = parameters.event_id!
    const {
      events,
      versions,
      event_id: original,
    } = await ask.read<EventsList & { versions: number; event_id: string }>('event.history', {
      event_id: id,
      limit: 50,
    })
    const items = await Promise.all(events.map((version, n) => versionHtml(version, events[n - 1], n + 1)))
    const [first] = events
    return shown({
      title: `History of post ${original.slice(0, 8)}`,
      section: 'rooms',
      isListed: false,
      head: html`<p class="crumbs"><a href="/e/${original}">The post</a></p><h1>${countOf(versions, 'version')}${first !== undefined && html` by ${nameOf(first.author)}`}</h1><p class="lead">Each version is a signed post of its own, with its own leaf in the public log: none replaces what was signed before.</p>`,
      main: html`<ol class="timeline">${items}</ol>`,
    })
  },
}

async function versionHtml(version: EventView, before: EventView | undefined, number: number) {
  const { event_id: id, created_at: at, text, reason } = version
  const body =
    text === undefined
      ? html`<p class="text gone">The text is gone: ${sentence(reason ?? 'removed')}</p>`
      : before?.text === undefined
        ? html`<p class="text" dir="auto">${textHtml(text)}</p>`
        : await diffHtml(before.text, text)
  return html`<li><h2 class="line">Version ${number} · ${when(at)}</h2>${body}<p class="line"><a href="/e/${id}/proof">its own proof</a><a href="/api/events/${id}">as JSON</a></p></li>`
}
