/** Doors of the pages for people, and of the files they load. */
import { readFileSync } from 'node:fs'
import type { Front } from '../command/front.ts'
import { escaped, page } from '../pages/layout.ts'
import { noProofPage, type ProofFacts, proofPage } from '../pages/proof.ts'
import type { ReadAnswer } from '../views/reads/read.ts'
import { etagOf } from './answers.ts'
import type { Exchange, Header } from './port.ts'
import type { RouteHandler } from './routes.ts'

/** Nothing from elsewhere, nothing inline, no sink that turns strings into markup (W3C CSP 3, Trusted Types). */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const pageHeaders: readonly Header[] = [
  ['content-type', 'text/html; charset=utf-8'],
  ['content-security-policy', contentSecurityPolicy],
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-opener-policy', 'same-origin'],
]

export type PageDoorOptions = {
  readonly front: Front
  /** Public address of the board. */
  readonly address: string
}

const assets = { 'style.css': 'text/css; charset=utf-8', 'proof.js': 'text/javascript; charset=utf-8' } as const

export function pageDoors(options: PageDoorOptions): Readonly<Record<string, RouteHandler>> {
  return {
    ...Object.fromEntries(Object.entries(assets).map(([name, type]) => [`/assets/${name}`, asset(name, type)])),
    '/e/': (exchange, rest) => {
      const [, id] = /^([0-9a-f]{32})\/proof$/.exec(rest) ?? []
      if (id === undefined)
        return send(
          exchange,
          404,
          page({ title: 'Nothing here', body: `<h1>There is nothing at /e/${escaped(rest.slice(0, 80))}</h1>` }),
        )
      proof(options, exchange, id)
    },
  }
}

function proof({ front, address }: PageDoorOptions, exchange: Exchange, id: string): void {
  front.read({ op: 'event.get', args: { event_id: id }, reader: '' }, (found) => {
    if (found === undefined) return exchange.drop()
    if (!found.ok) return send(exchange, 400, noProofPage(id))
    const { event } = dataOf<{ event: ProofFacts['event'] }>(found)
    // What is shown is the newest version, so that is what is proved.
    front.read({ op: 'log.proof', args: { event_id: event.version_id ?? id }, reader: '' }, (proved) => {
      if (proved === undefined) return exchange.drop()
      if (!proved.ok) return send(exchange, 400, noProofPage(id))
      send(exchange, 200, proofPage({ event, proof: dataOf<ProofFacts['proof']>(proved), address }))
    })
  })
}

function dataOf<Data>({ json }: Extract<ReadAnswer, { ok: true }>): Data {
  return JSON.parse(json) as Data
}

function send(exchange: Exchange, status: number, html: string): void {
  if (!exchange.ended) exchange.reply(status, [...pageHeaders, ['cache-control', 'no-cache']], html)
}

function asset(name: string, type: string): RouteHandler {
  const body = readFileSync(new URL(`../pages/assets/${name}`, import.meta.url))
  const etag = etagOf(body)
  const headers: readonly Header[] = [
    ['content-type', type],
    ['etag', etag],
    ['cache-control', 'public, max-age=300'],
    ['x-content-type-options', 'nosniff'],
    ['cross-origin-resource-policy', 'same-origin'],
  ]
  return (exchange) => {
    if (exchange.header('if-none-match') === etag) exchange.reply(304, headers, '')
    else exchange.reply(200, headers, body)
  }
}
