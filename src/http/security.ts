/**
 * Headers that keep users' content inert, by the kind of answer.
 *
 * - page: nothing from elsewhere, nothing inline but the style and the theme's line by their hashes, no sink that turns strings
 *   into markup (CSP 3, Trusted Types without any policy), no frame, no opener, no referrer.
 * - picture and script: files of this program; nothing in them loads anything.
 * - data (JSON, text): never an active document, wherever it is opened; other sites may read it, because it is public.
 * - file: a user's attachment (src/attachments/routes.ts): in a sandbox, never sniffed.
 */
import { styleSource, themeSource } from '../pages/assets.ts'
import type { Header } from './port.ts'

const policy = [
  "default-src 'none'",
  `script-src 'self' ${themeSource}`,
  `style-src ${styleSource}`,
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const noSniff: Header = ['x-content-type-options', 'nosniff']

/** Features that no page uses. */
const permissions =
  'camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), display-capture=(), browsing-topics=()'

export function pageHeaders(address: string): readonly Header[] {
  const isSecure = address.startsWith('https:')
  return [
    ['content-type', 'text/html; charset=utf-8'],
    ['content-security-policy', policy],
    noSniff,
    ['referrer-policy', 'no-referrer'],
    ['cross-origin-opener-policy', 'same-origin'],
    ['cross-origin-resource-policy', 'same-origin'],
    ['permissions-policy', permissions],
    ...(isSecure ? [['strict-transport-security', 'max-age=31536000'] as const] : []),
  ]
}

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
