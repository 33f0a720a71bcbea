/**
 * Headers of a page: nothing loaded from elsewhere, nothing inline except the style and the theme script, by their hashes, no sink that
 * turns strings into markup (CSP 3, Trusted Types without any policy), no frame, no opener, no referrer.
 */
import { styleSource, themeSource } from './assets.ts'

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

/** Features that no page uses. */
const permissions =
  'camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), display-capture=(), browsing-topics=()'

export function pageHeaders(address: string): readonly (readonly [name: string, value: string])[] {
  const isSecure = address.startsWith('https:')
  return [
    ['content-type', 'text/html; charset=utf-8'],
    ['content-security-policy', policy],
    ['x-content-type-options', 'nosniff'],
    ['referrer-policy', 'no-referrer'],
    ['cross-origin-opener-policy', 'same-origin'],
    ['cross-origin-resource-policy', 'same-origin'],
    ['permissions-policy', permissions],
    ...(isSecure ? [['strict-transport-security', 'max-age=31536000'] as const] : []),
  ]
}
