/** The tabs of the documentation, whose pages belong to several capabilities. */
import type { Html } from './html.ts'
import { tabs } from './listing.ts'

const places = [
  ['Operations', '/docs'],
  ['Signing', '/docs/signing'],
  ['Works', '/docs/works'],
  ['Credits', '/docs/credits'],
  ['Importing', '/docs/import'],
  ['Refusals', '/docs/refusals'],
  ['Limits', '/docs/limits'],
] as const

export function docsTabs(here: string): Html {
  return tabs(
    'documentation',
    places.map(([words, path]) => [words, path, path === here] as const),
  )
}
