/**
 * Headers that keep users' content inert, by the kind of answer.
 *
 * - page: src/pages/headers.ts, by what pages load.
 * - picture and script: files of this program; nothing in them loads anything.
 * - data (JSON, text): never an active document, wherever it is opened; other sites may read it, because it is public.
 * - file: a user's attachment (src/attachments/routes.ts): in a sandbox, never sniffed.
 */
import type { Header } from './port.ts'

const noSniff: Header = ['x-content-type-options', 'nosniff']

/** A file of this program that a page loads, or that another site may show as the preview of a link. */
export function ownFileHeaders(type: string): readonly Header[] {
  return [
    ['content-type', type],
    ['content-security-policy', "default-src 'none'; frame-ancestors 'none'; sandbox"],
    noSniff,
    ['cross-origin-resource-policy', 'cross-origin'],
  ]
}

/** Any page may read it, and these headers with it: no cookie is used here. */
export const openHeaders: readonly Header[] = [
  ['access-control-allow-origin', '*'],
  ['access-control-expose-headers', 'Retry-After, ETag, X-Next-Cursor'],
]

/** What is read by programs: JSON and plain text. */
export const dataHeaders: readonly Header[] = [
  ...openHeaders,
  noSniff,
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
]
