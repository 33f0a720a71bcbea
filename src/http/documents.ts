/** Documents about the board itself: bytes made once, when somebody asks for them; no start waits for them. */
import { capabilities, type Described } from '../views/capabilities.ts'
import { forAgents, llmsText, robotsText } from '../views/for-agents.ts'
import { openapi } from '../views/openapi.ts'
import { exampleLibraries } from '../views/operation-examples.ts'
import { etagOf, isHeld } from './answers.ts'
import type { Header } from './port.ts'
import type { RouteHandler } from './routes.ts'
import { dataHeaders } from './security.ts'

const json = 'application/json; charset=utf-8'
const text = 'text/plain; charset=utf-8'

export function documentPaths(board: Described): Readonly<Record<string, RouteHandler>> {
  return {
    '/capabilities': serve(json, () => JSON.stringify({ ok: true, data: capabilities(board) })),
    '/openapi.json': serve(json, () => JSON.stringify(openapi(board))),
    '/for-agents': serve(text, () => forAgents(board)),
    '/llms.txt': serve(text, () => llmsText(board)),
    '/robots.txt': serve(text, () => robotsText),
    ...Object.fromEntries(
      Object.entries(exampleLibraries(board)).map(([name, code]) => [`/docs/${name}`, serve(text, () => code)]),
    ),
  }
}

type Made = { readonly body: Buffer; readonly etag: string; readonly headers: readonly Header[] }

function serve(type: string, render: () => string): RouteHandler {
  let made: Made | undefined
  return (exchange) => {
    made ??= make(type, render())
    const { body, etag, headers } = made
    if (isHeld(exchange, etag)) exchange.reply(304, headers, '')
    else exchange.reply(200, headers, body)
  }
}

function make(type: string, text: string): Made {
  const body = Buffer.from(text)
  const etag = etagOf(body)
  const headers: readonly Header[] = [
    ['content-type', type],
    ['etag', etag],
    ['cache-control', 'public, max-age=60'],
    ...dataHeaders,
  ]
  return { body, etag, headers }
}
