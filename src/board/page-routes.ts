/**
 * Routes of the pages for people, and of the files that they load.
 *
 * A page is rendered once for all readers. Its bytes are cached, raw and gzipped, as long as nothing that it shows has changed, and
 * concurrent requests share one rendering. A redacted text is never shown: cached bytes are valid only for the change number they were
 * rendered at.
 */

import { promisify } from 'node:util'
import { gzip as gzipCallback } from 'node:zlib'
import { type FieldName, fields } from '../../actors/kernel/fields.ts'
import { internalLimits, sizes } from '../../actors/kernel/limits.ts'
import { networkOf } from '../../actors/kernel/networks.ts'
import { type Refusal, refusal, statusOf } from '../../actors/kernel/refusals.ts'
import type { Schema } from '../../actors/kernel/schema.ts'
import type { Timers } from '../../actors/kernel/timers.ts'
import { operationByName } from '../../actors/operations.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { TurnoverMap } from '../../storage/turnover-map.ts'
import { faultOf } from '../command/check.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import { refused } from '../format/reply.ts'
import { type Check, compile } from '../format/schema-check.ts'
import { parseStrictJson } from '../format/strict-json.ts'
import { etagOf, fixedAnswer, isCurrent, isHeld, type Ready, ReadyAnswers } from '../http/answers.ts'
import type { Exchange, Header, RouteHandler } from '../http/port.ts'
import { parseQuery } from '../http/query.ts'
import { dataHeaders, ownFileHeaders, type Replies } from '../http/replies.ts'
import { takesGzip } from '../http/wire.ts'
import { log } from '../observe.ts'
import { assets, iconSvg } from '../pages/assets.ts'
import { pageHeaders } from '../pages/headers.ts'
import { layout } from '../pages/layout.ts'
import {
  Ask,
  type AskOptions,
  Moved,
  type Page,
  type PageRequest,
  Refused,
  type Shown,
  Unanswered,
} from '../pages/page.ts'
import type { RenderTexts } from '../pages/page-texts.ts'
import { changesMax } from '../pages/pieces/diff.ts'
import { html } from '../pages/pieces/html.ts'
import type { RenderItem } from '../pages/pieces/rendered.ts'
import { faultPage, notFoundPage, refusedPage, unansweredPage } from '../pages/refused.ts'
import { Renderer } from '../pages/renderer.ts'
import type { Platform } from '../platform.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { ReadRequest } from '../reads/read.ts'
import { noteCause } from '../runtime/slow-turns.ts'
import { pages } from './pages.ts'
import type { ReadRouter } from './read-router.ts'

const gzip = promisify(gzipCallback)

type PageRoutesOptions = Omit<AskOptions, 'change' | 'fault' | 'read' | 'render'> & {
  readonly reads: Pick<ReadRouter, 'read'>
  readonly news: LiveFacts
  readonly throttle: Throttle
  readonly addressOf: (exchange: Exchange) => string
  readonly onReply: (status: number) => void
  readonly replies: Pick<Replies, 'isWithinReads' | 'refuse' | 'wrongMethod'>
  /** Records a fault and returns its id in the log. */
  readonly onFault: (error: unknown) => string
  readonly timers: Timers
  readonly startPool: Platform['startPool']
  readonly onBytesReleased: Platform['onBytesReleased']
}

type Pattern = { readonly page: Page; readonly path: RegExp; readonly names: readonly string[] }

export type PageRoutes = {
  /** By first path segment, as Routes looks them up. */
  readonly routes: Readonly<Record<string, RouteHandler>>
  /** POST: a text as the pages would show it, for its author or a reader of a private room. */
  readonly preview: RouteHandler
  /** Answers a browser that requests a missing path with a page; false if it is not a browser. */
  readonly nowhere: (exchange: Exchange) => boolean
  /** Stops the rendering thread, if there is one. */
  readonly close: () => Promise<void>
}

export function pageRoutes(options: PageRoutesOptions): PageRoutes {
  const server = new PageServer(options)
  const byPrefix = new Map<string, Pattern[]>()
  for (const page of pages) {
    const slash = page.path.indexOf('/', 1)
    const key = slash < 0 ? page.path : page.path.slice(0, slash + 1)
    byPrefix.set(key, [...(byPrefix.get(key) ?? []), patternOf(page)])
  }
  const routes = Object.fromEntries(
    [...byPrefix].map(([prefix, patterns]): [string, RouteHandler] => [
      prefix,
      (exchange) => server.handle(exchange, patterns),
    ]),
  )
  const files = Object.fromEntries(
    assets.map(({ path, type, body }): [string, RouteHandler] => [path, ownFile(type, body, immutable)]),
  )
  const icon = { '/icon.svg': ownFile('image/svg+xml', Buffer.from(iconSvg), 'public, max-age=86400') }
  return {
    routes: { ...routes, ...files, ...icon },
    preview: (exchange) => server.preview(exchange),
    nowhere: (exchange) => server.nowhere(exchange),
    close: () => server.close(),
  }
}

function patternOf(page: Page): Pattern {
  const names: string[] = []
  const path = page.path
    .replaceAll('.', '\\.')
    .replace(/\{(\w+)((?:\\\.){3})?\}/g, (_, name: string, isLong?: string) => {
      names.push(name)
      return isLong === undefined ? '([^/]{1,200})' : '(.{1,2000})'
    })
  return { page, path: new RegExp(`^${path}$`), names }
}

/** Feeds are data, which any site may read. Everything else that a page serves as bytes is a file of this program. */
function fileHeaders(type: string): readonly Header[] {
  return type.startsWith('application/') ? [['content-type', type], ...dataHeaders] : ownFileHeaders(type)
}

const feedPath = /\.(?:atom|json)$/

const immutable = 'public, max-age=31536000, immutable'

function ownFile(type: string, body: Buffer, caching: string): RouteHandler {
  return fixedAnswer([...ownFileHeaders(type), ['cache-control', caching]], () => body)
}

/** A page that is being rendered, and the rendering after it if a request needs a newer one. */
type PendingPage = {
  /** Newest change when rendering began. */
  readonly change: number
  readonly made: Promise<Ready>
  next: Promise<Ready> | undefined
}

type Asked = { readonly page: Page; readonly request: PageRequest; readonly key: string }

const knownMax = 4_096
const knownBytesMax = 512

/** The page at an address; unknown parameters have no effect. */
function readAddress(exchange: Exchange, patterns: readonly Pattern[]): Asked | Refusal | undefined {
  for (const { page, path, names } of patterns) {
    const match = path.exec(exchange.path)
    if (match === null) continue
    const all = parseQuery(exchange.query, sizes.url_query_bytes)
    if ('code' in all) return all
    const query = new Map<string, string>()
    for (const name of page.query ?? []) {
      const value = all.get(name) || all.get(page.alsoCalled?.[name] ?? name)
      if (value) query.set(name, value)
    }
    const parameters = Object.fromEntries(names.map((name, n) => [name, match[n + 1]!]))
    return { page, request: { path: exchange.path, parameters, query }, key: JSON.stringify([exchange.path, ...query]) }
  }
  return undefined
}

/** JSON may encode each character of a text as six. */
/** Of a draft, or of a text of a private room. */
const previewTextMax = Math.max(sizes.text_bytes, sizes.doc_text_bytes)
const previewBytesMax = 2 * 6 * previewTextMax + 64

/** Undefined if the body is not a text that can be shown, or two that can be compared. */
function previewIn(body: Buffer): RenderItem | undefined {
  const parsed = parseStrictJson(body)
  const { text, format, before } = Object(parsed.ok ? parsed.value : undefined)
  if (!isPreviewText(text)) return undefined
  if (isPreviewText(before)) return { kind: 'diff', before, text, whole: '#', changesMax }
  return format === 'text' || format === 'markdown' ? { kind: format, text, whole: '#' } : undefined
}

function isPreviewText(text: unknown): text is string {
  return typeof text === 'string' && Buffer.byteLength(text) <= previewTextMax
}

class PageServer {
  readonly #options: PageRoutesOptions
  readonly #ready = new ReadyAnswers(internalLimits.pageCacheBytes)
  readonly #renderer: Renderer
  /** Pages that are being rendered, by key. */
  readonly #pending = new TurnoverMap<string, PendingPage>()
  /** The same pages, gzipped. */
  readonly #packed = new WeakMap<Ready, Promise<Ready>>()
  readonly #headers: readonly Header[]
  readonly #newest = (room: string | undefined): number => this.#options.news.newestChange(room)
  /** Addresses as requested, and the pages they stand for, for pages that are ready. */
  readonly #known = new BoundedMap<string, Asked>(knownMax)

  constructor(options: PageRoutesOptions) {
    this.#options = options
    this.#headers = pageHeaders(options.board.address)
    this.#renderer = new Renderer({
      timers: options.timers,
      startPool: options.startPool,
      report: (event, facts) => log('warn', event, facts),
    })
  }

  close(): Promise<void> {
    return this.#renderer.close()
  }

  handle(exchange: Exchange, patterns: readonly Pattern[]): void {
    const { throttle, addressOf } = this.#options
    const address = addressOf(exchange)
    const wait = throttle.reads(address)
    if (wait > 0)
      return this.#refuse(
        exchange,
        refusal('rate_limited', `Too many reads from this address: wait ${wait} s.`, undefined, wait),
      )
    const url = exchange.query === '' ? exchange.path : `${exchange.path}?${exchange.query}`
    const known = this.#known.get(url)
    const found = known ?? readAddress(exchange, patterns)
    if (found === undefined) return this.#sendPage(exchange, 404, notFoundPage(exchange.path))
    if ('code' in found) return this.#refuse(exchange, found)
    noteCause(found.page.path)
    const isPacked = takesGzip(exchange.header('accept-encoding'))
    const name = isPacked ? `${found.key} gzip` : found.key
    const ready = this.#ready.find(name, this.#newest, this.#options.now())
    if (ready !== undefined) {
      if (known === undefined && url.length <= knownBytesMax) this.#known.set(url, found)
      return this.#send(exchange, ready, isPacked)
    }
    const made = this.#make(found, address)
    const wanted = isPacked ? made.then((plain) => this.#pack(plain)) : made
    wanted.then(
      (page) => {
        this.#ready.keep(name, page)
        this.#send(exchange, page, isPacked)
      },
      (error: unknown) => this.#fail(exchange, error),
    )
  }

  /**
   * Only a page of this board can call this, because a form of another site cannot send JSON. So no site can show its own words under this
   * address.
   */
  preview(exchange: Exchange): void {
    const { replies, addressOf } = this.#options
    if (exchange.method !== 'POST') return replies.wrongMethod(exchange, 'POST')
    const refuse = (found: Refusal) => replies.refuse(exchange, found)
    if (!/^application\/json\b/.test(exchange.header('content-type') ?? ''))
      return refuse(refusal('invalid_json', 'POST /preview takes a body of type application/json'))
    const address = addressOf(exchange)
    if (!replies.isWithinReads(exchange)) return
    noteCause('/preview')
    exchange.readBody(previewBytesMax, (result) => {
      const item = result.ok ? previewIn(result.body) : undefined
      if (item === undefined)
        return refuse(
          refusal(
            'invalid_json',
            `send {"text", "format"}: a text of at most ${previewTextMax} bytes, text or markdown; or {"text", "before"}`,
          ),
        )
      this.#showPreview(exchange, item, address).catch((error: unknown) => this.#fail(exchange, error))
    })
  }

  async #showPreview(exchange: Exchange, item: RenderItem, address: string): Promise<void> {
    const ask = this.#askFor(address, this.#options.news.settled)
    const shownText = await ask.mainText(item)
    const body = html`<!DOCTYPE html>
<html lang="en"><title>Preview</title><div id="preview">${item.kind === 'markdown' ? html`<div class="text prose" dir="auto">${shownText}</div>` : shownText}</div></html>
`
    if (exchange.ended) return
    this.#options.onReply(200)
    exchange.reply(200, [...this.#headers, ['cache-control', 'no-store']], body.text)
  }

  nowhere(exchange: Exchange): boolean {
    if (!/\btext\/html\b/.test(exchange.header('accept') ?? '')) return false
    this.#sendPage(exchange, 404, notFoundPage(exchange.path))
    return true
  }

  /**
   * Concurrent requests share the rendering in progress if it covers every change confirmed when they arrived. Otherwise they share the
   * next rendering, which begins when this one ends. So each page has at most one rendering in progress.
   */
  #make(asked: Asked, address: string): Promise<Ready> {
    // A search waits for others of its network, so other requests must not wait with it.
    const key = asked.page.isSearch === true ? `${asked.key} ${address}` : asked.key
    const running = this.#pending.get(key)
    if (running === undefined) return this.#begin(asked, key, address)
    if (running.change >= this.#options.news.settled) return running.made
    const next = (): Promise<Ready> => this.#pending.get(key)?.made ?? this.#begin(asked, key, address)
    running.next ??= running.made.then((made) => (this.#isCurrent(made) ? made : next()), next)
    return running.next
  }

  #begin(asked: Asked, key: string, address: string): Promise<Ready> {
    const change = this.#options.news.settled
    const made = this.#render(asked, address, change)
    this.#pending.set(key, { change, made, next: undefined })
    const forget = (): void => {
      this.#pending.delete(key)
    }
    made.then(forget, forget)
    return made
  }

  async #render({ page, request }: Asked, address: string, change: number): Promise<Ready> {
    const ask = this.#askFor(address, change)
    const shown = await page.show(ask, request)
    const { room, until } = ask.scope
    const bytes = this.#bytesOf(shown, request)
    this.#options.onBytesReleased(bytes.body.length)
    return {
      ...bytes,
      room: room ?? undefined,
      // A page that does not depend on the board's content never becomes stale.
      change: room === null ? Number.POSITIVE_INFINITY : change,
      until,
    }
  }

  #askFor(address: string, change: number): Ask {
    const render: RenderTexts = (items) => this.#renderer.render(items, networkOf(address))
    const read: AskOptions['read'] = (request, answer) => this.#options.reads.read(request, answer, { address })
    return new Ask({ ...this.#options, read, render, fault: argumentFault, change })
  }

  #bytesOf(shown: Shown, request: PageRequest): Pick<Ready, 'body' | 'etag' | 'file'> {
    if (shown.kind === 'bytes') {
      const body = Buffer.from(shown.body)
      return { body, etag: etagOf(body), file: shown.type }
    }
    const document = this.#document(shown, request)
    const body = Buffer.from(document)
    return { body, etag: pageEtag(document, body), file: undefined }
  }

  #isCurrent(ready: Ready): boolean {
    return isCurrent(ready, this.#newest, this.#options.now())
  }

  #pack(plain: Ready): Promise<Ready> {
    const known = this.#packed.get(plain)
    if (known !== undefined) return known
    const etag = plain.etag.replace(/"$/, '-gzip"')
    const packed = gzip(plain.body, { level: 6 }).then((body) => ({ ...plain, body, etag }))
    this.#packed.set(plain, packed)
    return packed
  }

  #document(shown: Extract<Shown, { kind: 'page' }>, { path, query }: PageRequest): string {
    const rest = [...query].filter(([name]) => name !== 'cursor').map((pair) => pair.map(encodeURIComponent).join('='))
    return layout(shown.parts, {
      board: this.#options.board,
      path: rest.length === 0 ? path : `${path}?${rest.join('&')}`,
    })
  }

  #send(exchange: Exchange, { body, etag, file: type }: Ready, isPacked: boolean): void {
    if (exchange.ended) return
    const headers: Header[] = [
      ...(type === undefined ? this.#headers : fileHeaders(type)),
      ['cache-control', 'no-cache'],
      ['etag', etag],
      ['vary', 'accept-encoding'],
    ]
    const isSame = isHeld(exchange, etag)
    this.#options.onReply(isSame ? 304 : 200)
    if (isSame) return exchange.reply(304, headers, '')
    if (isPacked) headers.push(['content-encoding', 'gzip'])
    exchange.reply(200, headers, body)
  }

  #fail(exchange: Exchange, error: unknown): void {
    if (error instanceof Moved) return this.#lead(exchange, error.path)
    if (error instanceof Refused) return this.#refuse(exchange, error.refusal)
    if (error instanceof Unanswered) return this.#sendPage(exchange, 429, unansweredPage(), [['retry-after', '1']])
    this.#sendPage(exchange, 500, faultPage(this.#options.onFault(error)))
  }

  #lead(exchange: Exchange, path: string): void {
    if (exchange.ended) return
    this.#options.onReply(308)
    exchange.reply(308, [...this.#headers, ['location', path], ['cache-control', 'public, max-age=3600']], '')
  }

  #refuse(exchange: Exchange, found: Refusal): void {
    const extra: readonly Header[] = found.retryAfter === undefined ? [] : [['retry-after', String(found.retryAfter)]]
    if (feedPath.test(exchange.path)) return this.#refuseFeed(exchange, found, extra)
    this.#sendPage(
      exchange,
      statusOf[found.code],
      refusedPage(found, { path: exchange.path, query: exchange.query }),
      extra,
    )
  }

  /** Feeds are read by programs, so refusals are JSON, as at other paths for programs. */
  #refuseFeed(exchange: Exchange, found: Refusal, extra: readonly Header[]): void {
    if (exchange.ended) return
    const { status, body } = refused(found)
    this.#options.onReply(status)
    exchange.reply(status, [...fileHeaders('application/json'), ['cache-control', 'no-store'], ...extra], body)
  }

  #sendPage(exchange: Exchange, status: number, shown: Shown, extra: readonly Header[] = []): void {
    if (exchange.ended || shown.kind !== 'page') return
    this.#options.onReply(status)
    const body = layout(shown.parts, { board: this.#options.board })
    exchange.reply(status, [...this.#headers, ['cache-control', 'no-store'], ...extra], body)
  }
}

/**
 * A weak tag, of everything but the position of the live list and the cursors. Two pages that differ only in where the live list continues
 * are equivalent: a reader of the older one receives a few more corrections. Pages whose cursors were sealed again are equivalent too,
 * because earlier cursors stay valid.
 */
function pageEtag(page: string, body: Buffer): string {
  const isLasting = !body.includes('cursor=') && !body.includes(' data-live-change="')
  if (isLasting) return `W/${etagOf(body)}`
  return `W/${etagOf(page.replace(/ data-live-change="\d+"/, '').replace(/([?;]cursor=)[\w-]+/g, '$1'))}`
}

/** Arguments in the address are checked by the operation's declaration, as on every other route. */
function argumentFault(op: string, args: ReadRequest['args']): Refusal | undefined {
  const operation = operationByName.get(op)
  if (operation === undefined) return undefined
  const properties = operation.data?.properties ?? {}
  for (const [name, value] of Object.entries(args)) {
    const schema = properties[name]
    const field = name in fields ? (operation.narrowed?.[name as FieldName] ?? fields[name as FieldName]) : undefined
    if (field !== undefined) {
      const fault = faultOf(name, field, value)
      if (fault !== undefined) return fault
    } else if (schema === undefined || !checkOfData(schema)(value)) {
      return refusal('invalid_field', `${name} is not a value that ${op} accepts: see /docs/${op}`, name)
    }
  }
  return undefined
}

const compiled = new Map<Schema, Check>()

function checkOfData(schema: Schema): Check {
  const check = compiled.get(schema) ?? compile(schema)
  compiled.set(schema, check)
  return check
}
