/** Documents about the board itself: bytes made once, at the first request for them; no start waits for them. */

import { capabilities, type Described } from '../docs/capabilities.ts'
import { exampleLibraries } from '../docs/operation-examples.ts'
import { spellUnseen } from '../format/printable.ts'
import { fixedAnswer } from '../http/fixed-answer.ts'
import type { RouteHandler } from '../http/port.ts'
import { dataHeaders } from '../http/security.ts'
import { forAgents, llmsText, robotsText } from './for-agents.ts'
import { openapi } from './openapi.ts'

const json = 'application/json; charset=utf-8'
const text = 'text/plain; charset=utf-8'

export function documentPaths(board: Described): Readonly<Record<string, RouteHandler>> {
  return {
    '/capabilities': serve(json, () => jsonOf({ ok: true, data: capabilities(board) })),
    '/openapi.json': serve(json, () => jsonOf(openapi(board))),
    '/for-agents': serve(text, () => forAgents(board)),
    '/llms.txt': serve(text, () => llmsText(board)),
    '/robots.txt': serve(text, () => robotsText),
    ...Object.fromEntries(
      Object.entries(exampleLibraries(board)).map(([name, code]) => [`/docs/${name}`, serve(text, () => code)]),
    ),
  }
}

function serve(type: string, render: () => string): RouteHandler {
  return fixedAnswer([['content-type', type], ['cache-control', 'public, max-age=60'], ...dataHeaders], render)
}

/** Patterns hold characters that are not seen or turn the direction of a line: in a file that people open they are spelled. */
function jsonOf(value: unknown): string {
  return spellUnseen(JSON.stringify(value))
}
