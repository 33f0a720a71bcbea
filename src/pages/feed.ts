/**
 * Feeds for feed readers: Atom (RFC 4287) and JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/). Titles and texts are untrusted: they
 * are text, never markup, and the Atom feed contains no character that XML does not allow.
 *
 * A feed is a page, so its bytes are cached as long as a page's are, and redacted text leaves both at the same change.
 */

import { importedText } from '../format/imported.ts'
import { titleOf } from '../reads/thread-title.ts'
import type { ShownEvent } from './data.ts'
import type { Ask, Page, PageRequest, Parts } from './page.ts'
import { cutTo } from './pieces/text.ts'

type FeedEntry = {
  /** 32 hex of the event that the entry is about: its page is `/e/{id}`. */
  readonly id: string
  readonly title: string
  /** Of any length; a feed shows its beginning. */
  readonly text: string
  /** Unix seconds. */
  readonly created: number
  readonly updated: number
  readonly author: { readonly id: string; readonly handle?: string }
  readonly tags: readonly string[]
}
export type Feed = { readonly title: string; readonly entries: readonly FeedEntry[] }

export const feedEntriesMax = 50
const textMax = 2_000

const forms = [
  ['.atom', 'application/atom+xml; charset=utf-8', atomOf],
  ['.json', 'application/feed+json; charset=utf-8', jsonOf],
] as const

/** The feed of a page, in both formats. `path`: of that page, like `/room/{room}`. */
export function feedPages(
  path: string,
  about: string,
  read: (ask: Ask, parameters: PageRequest['parameters']) => Promise<Feed>,
): readonly Page[] {
  return forms.map(([ending, type, write]) => ({
    path: `${path}${ending}`,
    about: `${about}, as ${ending === '.atom' ? 'Atom' : 'JSON Feed'}.`,
    feed: type,
    async show(ask, request) {
      const { parameters } = request
      const place: Place = {
        address: ask.board.address,
        self: `${ask.board.address}${request.path}`,
        home: `${ask.board.address}${request.path.slice(0, -ending.length)}`,
      }
      const { title, entries } = await read(ask, parameters)
      // Feed readers treat an item without a text as broken.
      const shown = entries.map((entry) => ({ ...entry, text: cutTo(entry.text || entry.title, textMax) }))
      return { kind: 'bytes', type, body: Buffer.from(write({ title, entries: shown }, place)) }
    },
  }))
}

/** The links to its feed in the head of a page. `path`: of the page. */
export function feedLinks(path: string, title: string): NonNullable<Parts['links']> {
  return [
    ['alternate', 'application/atom+xml', title, `${path}.atom`],
    ['alternate', 'application/feed+json', title, `${path}.json`],
  ]
}

/** A text, preceded by the claim of its source. */
export function sourced(text: string, source: ShownEvent['source']): string {
  return source === undefined ? text : `(${importedText(source)})\n\n${text}`
}

/** A post in a feed; redacted posts are in none. */
export function postEntry(event: ShownEvent): FeedEntry {
  return {
    id: event.event_id,
    title: titleOf(event).title,
    text: sourced(event.text ?? '', event.source),
    created: event.created_at,
    updated: event.edited_at ?? event.created_at,
    author: event.author,
    tags: [event.room, ...(event.page === 'main' ? [] : [event.page])],
  }
}

type Place = {
  readonly address: string
  /** Addresses of the feed and of its page. */
  readonly self: string
  readonly home: string
}

function newestIn({ entries }: Feed): number {
  return entries.reduce((newest, { updated }) => Math.max(newest, updated), 0)
}

function atomOf(feed: Feed, { address, self, home }: Place): string {
  return [
    '<?xml version="1.0" encoding="utf-8"?>',
    '<feed xmlns="http://www.w3.org/2005/Atom">',
    `<title>${xml(feed.title)}</title>`,
    `<id>${xml(self)}</id>`,
    `<link rel="self" type="application/atom+xml" href="${xml(self)}"/>`,
    `<link rel="alternate" type="text/html" href="${xml(home)}"/>`,
    `<updated>${time(newestIn(feed))}</updated>`,
    ...feed.entries.map((entry) => atomEntry(entry, address)),
    '</feed>',
    '',
  ].join('\n')
}

function atomEntry({ id, title, text, created, updated, author, tags }: FeedEntry, address: string): string {
  const link = xml(`${address}/e/${id}`)
  return [
    '<entry>',
    `<title type="text">${xml(title)}</title>`,
    `<id>${link}</id>`,
    `<link rel="alternate" type="text/html" href="${link}"/>`,
    `<published>${time(created)}</published>`,
    `<updated>${time(updated)}</updated>`,
    `<author><name>${xml(author.handle ?? author.id)}</name><uri>${xml(`${address}/i/${author.id}`)}</uri></author>`,
    ...tags.map((tag) => `<category term="${xml(tag)}"/>`),
    `<summary type="text">${xml(text)}</summary>`,
    '</entry>',
  ].join('\n')
}

function jsonOf(feed: Feed, { address, self, home }: Place): string {
  return JSON.stringify({
    version: 'https://jsonfeed.org/version/1.1',
    title: feed.title,
    home_page_url: home,
    feed_url: self,
    items: feed.entries.map(({ id, title, text, created, updated, author, tags }) => ({
      id: `${address}/e/${id}`,
      url: `${address}/e/${id}`,
      title,
      content_text: text,
      date_published: time(created),
      date_modified: time(updated),
      authors: [{ name: author.handle ?? author.id, url: `${address}/i/${author.id}` }],
      tags,
    })),
  })
}

function time(at: number): string {
  return new Date(at * 1_000).toISOString()
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Replaces characters that XML 1.0 section 2.2 does not allow in a document. */
function xml(written: string): string {
  return written
    .toWellFormed()
    .replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\u{fffd}')
    .replace(/[&<>"]/g, (each) => escapes[each]!)
}
