/**
 * A document of the directory's index: what is known about one tool, agent or site, in the form that filters and results need.
 * Long texts stay in the journal, and are read only for the few that a caller looks at.
 */
import { createHash } from 'node:crypto'
import type { ToolKind, ToolType } from '../../actors/tools/kinds.ts'
import { type Door, hostOf, type Listing, subjectOf } from '../../actors/tools/listing.ts'
import { billionthsOf } from './prices.ts'

export type Doc = {
  /** Number in the index: a listing that is published again gets a new one. */
  readonly number: number
  readonly id: string
  readonly type: ToolType
  readonly kind: ToolKind
  readonly name: string
  /** Shortened for results. */
  readonly summary: string
  readonly category: string
  readonly tags: readonly string[]
  readonly network: string
  readonly protocols: readonly string[]
  readonly output: string
  readonly price: string
  readonly priceText: string
  /** Billionths of a dollar, Infinity if unknown. */
  readonly billionths: number
  readonly doors: readonly Door[]
  readonly subject: string
  readonly host: string
  /** It has an address at which tools.call can call it. */
  readonly isReached: boolean
  /** It is one of the board's own tools. */
  readonly isOwn: boolean
  /** The identity whose standing counts: an agent's own, or the owner of a listing. */
  readonly identity: string
  /** The same for all listings of one host with one description; '' if there is none. */
  readonly flood: string
  /** The same for all listings of one address and method; '' if there is none. */
  readonly twin: string
}

/** The texts that are searched. */
export type Texts = {
  readonly name: string
  readonly category: string
  readonly tags: string
  readonly description: string
  readonly url: string
}

export type Indexed = { readonly doc: Doc; readonly texts: Texts }

/** A tool of the board itself, as listed in the directory. */
export type OwnTool = {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly category: string
  readonly input: Readonly<Record<string, unknown>>
  readonly output: Readonly<Record<string, unknown>>
}

/** An identity that describes its capabilities. */
export type Agent = {
  readonly identity: string
  readonly handle: string | undefined
  readonly description: string
  readonly capabilities: readonly string[]
  /** Unix seconds: when it did so. */
  readonly at: number
}

export const agentId = (identity: string) => `agent:${identity}`

export function ofListing(number: number, listing: Listing, owner: string): Indexed {
  const { id, name, description, category, tags, url, method } = listing
  const host = hostOf(listing)
  return {
    doc: {
      number,
      ...pick(listing),
      summary: summaryOf(description),
      subject: subjectOf(listing),
      host,
      isReached: isReached(listing),
      isOwn: false,
      identity: owner,
      flood: host === '' || description === '' ? '' : digest(`${host}\n${description}`),
      twin: url === '' ? '' : digest(`${method}\n${url}`),
    },
    texts: {
      name: name === id ? '' : name,
      category,
      tags: tags.join(' '),
      description,
      url: url === '' ? id : wordsOfAddress(url),
    },
  }
}

function isReached({ type, kind, url, mcp_url }: Listing): boolean {
  if (type === 'site' || kind === 'site') return false
  return kind === 'mcp' ? mcp_url.startsWith('https:') : url.startsWith('https:')
}

/** Leaves out the parts that nearly every address has. */
function wordsOfAddress(url: string): string {
  if (!URL.canParse(url)) return url
  const { hostname, pathname } = new URL(url)
  return `${hostname.replace(/^www\.|\.[a-z]+$/g, '')} ${pathname}`
}

export function ofOwnTool(number: number, tool: OwnTool, at: number): Indexed {
  const { id, name, description, category } = tool
  const door: Door = { door: 'open', source: 'measured', checked_at: at }
  return {
    doc: {
      number,
      id,
      type: 'service',
      kind: 'builtin',
      name,
      summary: summaryOf(description),
      category,
      tags: [],
      network: '',
      protocols: [],
      output: 'json',
      price: '0',
      priceText: 'free',
      billionths: 0,
      doors: [door, { ...door, door: 'allowance' }],
      subject: subjectOf({ id, type: 'service', service: '', url: '', mcp_url: '' }),
      host: '',
      isReached: true,
      isOwn: true,
      identity: '',
      flood: '',
      twin: '',
    },
    texts: { name, category, tags: '', description, url: id },
  }
}

/** The one subject of all the board's tools in older releases: its reviews count for each of them. */
export const sharedOwnSubject = subjectOf({
  id: 'broadside',
  type: 'service',
  service: 'broadside',
  url: '',
  mcp_url: '',
})

export function ofAgent(number: number, { identity, handle, description, capabilities }: Agent): Indexed {
  const id = agentId(identity)
  const name = handle ?? `agent ${identity.slice(0, 12)}`
  return {
    doc: {
      number,
      id,
      type: 'agent',
      kind: 'agent',
      name,
      summary: summaryOf(description),
      category: capabilities[0] ?? '',
      tags: capabilities.slice(1),
      network: '',
      protocols: [],
      output: '',
      price: '',
      priceText: '',
      billionths: Number.POSITIVE_INFINITY,
      doors: [],
      subject: subjectOf({ id, type: 'agent', service: '', url: '', mcp_url: '' }),
      host: '',
      isReached: false,
      isOwn: false,
      identity,
      flood: '',
      twin: '',
    },
    texts: { name, category: capabilities[0] ?? '', tags: capabilities.join(' '), description, url: '' },
  }
}

type Picked = Pick<
  Doc,
  | 'id'
  | 'type'
  | 'kind'
  | 'name'
  | 'category'
  | 'tags'
  | 'network'
  | 'protocols'
  | 'output'
  | 'doors'
  | 'price'
  | 'priceText'
  | 'billionths'
>

function pick(listing: Listing): Picked {
  const { id, type, kind, name, category, tags, network, protocols, output, doors, price } = listing
  const paid = protocols.length > 0 && price !== '0'
  const known = price === '' ? undefined : billionthsOf(price)
  return {
    ...{ id, type, kind, name: oneLine(name), category, tags, output, doors, price },
    network: paid ? network : '',
    protocols: paid || protocols.includes('mcp') ? protocols.filter((each) => each !== 'mcp') : [],
    priceText: priceTextOf(listing),
    billionths: known === undefined ? Number.POSITIVE_INFINITY : Number(known),
  }
}

function priceTextOf({ price, price_text }: Listing): string {
  if (price_text !== '') return oneLine(price_text)
  if (price === '') return ''
  return price === '0' ? 'free' : `$${price} per call`
}

const summaryMax = 200

/** At most 200 characters, cut between words; without characters that move the cursor or change the direction of text. */
export function summaryOf(text: string): string {
  const line = oneLine(text)
  const characters = [...line]
  if (characters.length <= summaryMax) return line
  const start = characters.slice(0, summaryMax - 1).join('')
  const space = start.lastIndexOf(' ')
  return `${(space > summaryMax / 2 ? start.slice(0, space) : start).trimEnd()}…`
}

/** Removes control characters and those that are invisible or change the direction of text (Unicode Cc, Cf), and collapses whitespace. */
export function oneLine(text: string): string {
  return text
    .replace(/\s+/gu, ' ')
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, '')
    .trim()
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}
