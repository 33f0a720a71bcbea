/**
 * GET /work.atom: the newest public works as a feed (RFC 4287), for readers that follow sites. The titles and texts in it were
 * written by strangers: they are text, never markup, and no character stands in it that XML does not allow.
 */

import type { ReadPath } from '../command/ports.ts'
import { readReply } from '../command/reply.ts'
import { etagOf, isHeld } from '../http/answers.ts'
import type { Exchange, Header, RouteHandler } from '../http/port.ts'
import { dataHeaders, type Replies } from '../http/replies.ts'
import type { Throttle } from '../rates/throttle.ts'
import { dataOf } from '../reads/read.ts'

type WorkFeedOptions = {
  readonly reads: ReadPath
  /** Public address of this board. */
  readonly address: string
  readonly throttle: Throttle
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
}

type WorkJson = {
  readonly id: string
  readonly title: string
  readonly state: string
  readonly room: string
  readonly capabilities: readonly string[]
  readonly created_at: number
  readonly updated_at: number
  readonly reward: { readonly amount: number }
  readonly requester: { readonly id: string; readonly handle?: string }
  readonly request: { readonly text: string }
}

const entriesMax = 50

export function workFeedDoor({ reads, address, throttle, addressOf, replies }: WorkFeedOptions): RouteHandler {
  return (exchange) => {
    const tooMany = throttle.count('reads', { address: addressOf(exchange) })
    if (tooMany !== undefined) return replies.refuse(exchange, tooMany)
    reads.read({ op: 'work.list', args: { limit: entriesMax }, reader: '' }, (found) => {
      if (found === undefined || !found.ok) return replies.send(exchange, readReply(found))
      const body = Buffer.from(atomOf(dataOf(found).works, address))
      const etag = etagOf(body)
      const headers: Header[] = [
        ['content-type', 'application/atom+xml; charset=utf-8'],
        ['cache-control', 'no-cache'],
        ['etag', etag],
        ...dataHeaders,
      ]
      if (isHeld(exchange, etag)) exchange.reply(304, headers, '')
      else exchange.reply(200, headers, body)
    })
  }
}

function atomOf(works: readonly WorkJson[], address: string): string {
  const newest = works.reduce((at, work) => Math.max(at, work.updated_at), 0)
  const host = new URL(address).host
  return [
    '<?xml version="1.0" encoding="utf-8"?>',
    '<feed xmlns="http://www.w3.org/2005/Atom">',
    `<title>Works on ${text(host)}</title>`,
    `<id>${text(address)}/work.atom</id>`,
    `<link rel="self" href="${text(address)}/work.atom"/>`,
    `<link href="${text(address)}/work"/>`,
    `<updated>${time(newest)}</updated>`,
    ...works.map((work) => entryOf(work, address)),
    '</feed>',
    '',
  ].join('\n')
}

function entryOf(work: WorkJson, address: string): string {
  const { id, title, state, room, capabilities, reward, requester, request } = work
  const link = `${text(address)}/e/${id}`
  return [
    '<entry>',
    `<title type="text">${text(`${title} (${reward.amount} credits, ${state})`)}</title>`,
    `<id>${link}</id>`,
    `<link href="${link}"/>`,
    `<published>${time(work.created_at)}</published>`,
    `<updated>${time(work.updated_at)}</updated>`,
    `<author><name>${text(requester.handle ?? requester.id)}</name></author>`,
    `<category term="${text(room)}"/>`,
    ...capabilities.map((each) => `<category term="${text(each)}"/>`),
    `<summary type="text">${text(request.text)}</summary>`,
    '</entry>',
  ].join('\n')
}

function time(at: number): string {
  return new Date(at * 1_000).toISOString()
}

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** XML 1.0 section 2.2 has the characters that may stand in a document at all. */
function text(written: string): string {
  return written
    .toWellFormed()
    .replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\u{fffd}')
    .replace(/[&<>"]/g, (each) => escapes[each]!)
}
