/** Pages for people, from the list of pages itself. */

import type { Json } from '../format/plain-schema.ts'
import type { Page } from '../pages/page.ts'
import { pages } from './pages.ts'

export function pagePaths(): Json {
  return Object.fromEntries(pages.map((page) => [page.path.replaceAll('...}', '}'), { get: pathOf(page) }]))
}

function pathOf({ path, about, query = [] }: Page): Json {
  const isPicture = path.endsWith('.png')
  const inPath = [...path.matchAll(/\{(\w+)/g)].map(([, name]) => parameter(name!, 'path'))
  return {
    operationId: nameOf(path),
    tags: ['pages'],
    summary: about,
    description: 'A page for people, readable without scripts. Unknown parameters have no effect.',
    parameters: [...inPath, ...query.map((name) => parameter(name, 'query'))],
    responses: {
      '200': content(isPicture ? 'The picture.' : 'The page.', isPicture ? 'image/png' : 'text/html'),
      // Pages lead a person on where what they asked for has another address.
      ...(path.includes('...}') ? { '308': { description: 'It has another address: see Location.' } } : {}),
      '400': content('The address is invalid, or its subject does not exist.', 'text/html'),
      '403': content('A private room.', 'text/html'),
      '429': content('Too many reads from this address: wait for Retry-After.', 'text/html'),
    },
  }
}

function parameter(name: string, place: 'path' | 'query'): Json {
  return {
    name,
    in: place,
    ...(place === 'path' ? { required: true } : {}),
    schema: { type: 'string', maxLength: 2_000 },
  }
}

function content(description: string, type: string): Json {
  const schema = type === 'image/png' ? { type: 'string', format: 'binary' } : { type: 'string' }
  return { description, content: { [type]: { schema } } }
}

/** `/e/{event_id}/proof` -> `pageEProof`: no operation is called so, and no two pages. */
function nameOf(path: string): string {
  const words = path.replaceAll(/\{\w+(?:\.{3})?\}/g, 'One').split(/[^A-Za-z0-9]+/)
  return `page${words.map((word) => word.replace(/^./, (first) => first.toUpperCase())).join('') || 'Home'}`
}
