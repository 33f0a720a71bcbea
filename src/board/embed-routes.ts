/**
 * The script that shows a room on other sites, and its hash, so that a page can pin it (W3C Subresource Integrity).
 */

import { fixedAnswer } from '../http/fixed-answer.ts'
import type { Header, RouteHandler } from '../http/port.ts'
import { openHeaders } from '../http/security.ts'
import { embed } from '../pages/assets.ts'

export function embedDoors(address: string): Readonly<Record<string, RouteHandler>> {
  const { path, type, body, integrity } = embed
  const facts = { url: address + path, integrity, bytes: body.length }
  return {
    [path]: fixed(type, body),
    '/embed/v1.json': fixed('application/json; charset=utf-8', Buffer.from(JSON.stringify({ ok: true, data: facts }))),
  }
}

function fixed(type: string, body: Buffer): RouteHandler {
  const headers: readonly Header[] = [
    ['content-type', type],
    ['cache-control', 'public, max-age=300, stale-while-revalidate=86400'],
    ...openHeaders,
    ['cross-origin-resource-policy', 'cross-origin'],
    ['x-content-type-options', 'nosniff'],
  ]
  return fixedAnswer(headers, () => body)
}
