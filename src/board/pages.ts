/** The list of all pages. A new page is its own file and a line here; the first page whose path matches is shown. */

import { agentsPage } from '../docs/agents-page.ts'
import { contactPage } from '../docs/contact-page.ts'
import { faq } from '../docs/faq-page.ts'
import { docsImport } from '../docs/import-page.ts'
import { docsSigning, operationPage } from '../docs/operation-page.ts'
import { docs, docsLimits, docsRefusals } from '../docs/page.ts'
import { favicon } from '../docs/site-files.ts'
import { document, documentHistory } from '../documents/page.ts'
import { log } from '../log/page.ts'
import { proof } from '../log/proof-page.ts'
import { moderation } from '../moderation/page.ts'
import { embedPage } from '../pages/embed.ts'
import type { Page, Shown } from '../pages/page.ts'
import { type Card, card } from '../pages/pictures/card.ts'
import { nameOf, shortId } from '../pages/pieces/person.ts'
import { goneWords } from '../pages/pieces/text.ts'
import { countOf, utc } from '../pages/pieces/time.ts'
import { account, accountRooms, accountWebhooks, inbox, moderate } from '../people/own-pages.ts'
import { identity } from '../people/page.ts'
import { oembed } from '../posts/oembed.ts'
import { event, history, postLine } from '../posts/page.ts'
import { titleOf } from '../reads/thread-title.ts'
import { room, rooms } from '../rooms/page.ts'
import { search } from '../search/page.ts'
import { threadFeeds } from '../threads/feeds.ts'
import { tools } from '../tools/list-page.ts'
import { tool } from '../tools/tool-page.ts'
import { docsCredits } from '../works/credits-page.ts'
import { docsWorks } from '../works/docs-page.ts'
import { workFeeds } from '../works/feed.ts'
import { works } from '../works/list-page.ts'
import { work } from '../works/work-page.ts'
import { home } from './home-page.ts'
import { sitemap } from './sitemap.ts'

async function picture(what: Card): Promise<Shown> {
  return { kind: 'bytes', type: 'image/png', body: await card(what) }
}

/** Link previews as PNG for the board, a room, or a post. Redacted text is gone from them as from the page. */
const boardPreview: Page = {
  path: '/preview.png',
  about: 'Preview of the board for links to it.',
  show: ({ board }) =>
    picture({
      name: 'A board where every word is signed',
      place: new URL(board.address).host,
      text: 'For software agents and people. Every post is signed by its author, provable by anyone, streamed to many.',
    }),
}

const faviconPage: Page = {
  path: '/favicon.ico',
  about: 'The icon of the board, for programs that do not take the SVG.',
  show: async () => ({ kind: 'bytes', type: 'image/x-icon', body: await favicon() }),
}

const roomPreview: Page = {
  path: '/room/{room}/preview.png',
  about: 'Preview of a room.',
  async show(ask, { parameters }) {
    const { room } = await ask.read('room.get', { room: parameters.room! })
    return picture({ name: room.name, place: `a room with ${countOf(room.count, 'post')}`, text: room.about ?? '' })
  },
}

const eventPreview: Page = {
  path: '/e/{event_id}/preview.png',
  about: 'Preview of a post.',
  async show(ask, { parameters }) {
    const { event } = await ask.read('event.get', { event_id: parameters.event_id! })
    const { author, room, created_at: at } = event
    const { title, excerpt = '' } = titleOf(event)
    return picture({
      author: author.id,
      name: author.handle === undefined ? shortId(author.id) : nameOf(author),
      place: `in ${room}, ${utc(at)} UTC`,
      ...(event.text === undefined ? { text: goneWords(event) } : { headline: title, text: excerpt }),
    })
  },
}

export const pages: readonly Page[] = [
  home,
  // Feeds come before the pages whose paths they extend.
  ...threadFeeds,
  ...workFeeds,
  rooms,
  room,
  event,
  history,
  postLine,
  proof,
  document,
  documentHistory,
  works,
  work,
  tools,
  tool,
  identity,
  log,
  moderation,
  search,
  agentsPage,
  account,
  accountRooms,
  accountWebhooks,
  inbox,
  moderate,
  docs,
  docsSigning,
  docsRefusals,
  docsLimits,
  docsWorks,
  docsCredits,
  docsImport,
  operationPage,
  faq,
  contactPage,
  embedPage,
  oembed,
  sitemap,
  faviconPage,
  boardPreview,
  roomPreview,
  eventPreview,
]
