/**
 * A listing: one entry of the tools directory, as stated by its publisher or by an imported list.
 *
 * The signed content is stored only in the command: for `tools.publish` and `tools.update` it is the JSON in `data`, for
 * `tools.import` one of its `rows`. This file reads a listing from it, with the same result at every replay.
 */

import { createHash } from 'node:crypto'
import { type BoardRecord, commandIn, type FactRecord, RecordType } from '../records/record.ts'
import type { DoorName, DoorSource, ToolKind, ToolType } from './kinds.ts'

/** `checked_at`: Unix seconds, 0 = never probed. */
export type Door = { readonly door: DoorName; readonly source: DoorSource; readonly checked_at: number }

/** Empty texts and lists: not given. */
export type Listing = {
  readonly id: string
  readonly type: ToolType
  readonly kind: ToolKind
  readonly name: string
  readonly description: string
  /** Where the tool itself is; '' if only its name is known. */
  readonly url: string
  readonly category: string
  readonly tags: readonly string[]
  /** HTTP method it accepts, or ''. */
  readonly method: string
  /** Decimal dollars for one call: '0' = free, '' = unknown. */
  readonly price: string
  readonly price_text: string
  readonly network: string
  readonly protocols: readonly string[]
  readonly output: string
  readonly doors: readonly Door[]
  /** Id of the service that offers it, or ''. */
  readonly service: string
  readonly openapi_url: string
  readonly mcp_url: string
  readonly input_schema: Readonly<Record<string, unknown>> | undefined
  /** The list that it was imported from, or ''. */
  readonly source: string
}

/** The form in a command: what is not given is left out. */
export type ListingFields = { readonly name: string; readonly description: string } & Partial<
  Omit<Listing, 'name' | 'description' | 'doors'> & { readonly door: DoorName; readonly doors: readonly Door[] }
>

/** A listing with everything derived from the given fields. `at`: when they were signed. */
export function listingOf(id: string, fields: ListingFields, at: number): Listing {
  const { protocols = [], mcp_url = '', door, doors = [] } = fields
  const said: readonly Door[] = door === undefined ? doors : [{ door, source: 'self_reported', checked_at: at }]
  return {
    id,
    type: fields.type ?? 'service',
    kind: fields.kind ?? kindOf(protocols, mcp_url),
    name: fields.name,
    description: fields.description,
    url: fields.url ?? '',
    category: fields.category ?? '',
    tags: fields.tags ?? [],
    method: fields.method ?? '',
    price: fields.price ?? '',
    price_text: fields.price_text ?? '',
    network: fields.network ?? '',
    protocols,
    output: fields.output ?? '',
    doors: withInferred(said, protocols),
    service: fields.service ?? '',
    openapi_url: fields.openapi_url ?? '',
    mcp_url,
    input_schema: fields.input_schema,
    source: fields.source ?? '',
  }
}

function kindOf(protocols: readonly string[], mcpUrl: string): ToolKind {
  if (protocols.includes('x402')) return 'x402'
  if (protocols.some((each) => each === 'mpp' || each.startsWith('mpp/'))) return 'mpp'
  return mcpUrl !== '' || protocols.includes('mcp') ? 'mcp' : 'http'
}

/** A tool with a payment protocol has an interface for wallets, even if the listing does not name one. */
function withInferred(said: readonly Door[], protocols: readonly string[]): readonly Door[] {
  const isPaid = protocols.some((each) => each === 'x402' || each.startsWith('mpp'))
  if (!isPaid || said.some(({ door, source }) => door === 'wallet' && source !== 'self_reported')) return said
  return [...said, { door: 'wallet', source: 'inferred', checked_at: 0 }]
}

/** Lower-case host name of a tool, or ''. */
export function hostOf({ url, mcp_url }: Pick<Listing, 'url' | 'mcp_url'>): string {
  for (const address of [url, mcp_url]) if (URL.canParse(address)) return new URL(address).hostname
  return ''
}

/** Second-level names under which many countries sell registrations, such as co.uk. */
const registries: ReadonlySet<string> = new Set(['ac', 'co', 'com', 'edu', 'go', 'gov', 'ne', 'net', 'or', 'org'])

/**
 * Roughly what must be bought to have another one: the registered domain of a host (so hosts of one platform count as one), or
 * the address of the machine.
 */
export function siteOf(host: string): string {
  const labels = host.split('.')
  if (/^[\d.]+$/.test(host) || host.startsWith('[') || labels.length < 3) return host
  const isCountrys = labels.at(-1)!.length === 2 && registries.has(labels.at(-2)!)
  return labels.slice(isCountrys ? -3 : -2).join('.')
}

/** The subject of reviews: the offerings of one service, or of one host if no service is named, share a subject. */
export function subjectOf(listing: Pick<Listing, 'id' | 'type' | 'service' | 'url' | 'mcp_url'>): string {
  const host = listing.type === 'offering' ? hostOf(listing) : ''
  const key = listing.service !== '' ? listing.service : host === '' ? listing.id : `host:${host}`
  return `s_${createHash('sha256').update(`broadside-subject-v1\n${key}`).digest('hex').slice(0, 16)}`
}

/** A 16-hex digest that tells whether two listings have the same content. */
export function digestOf(fields: ListingFields): string {
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex').slice(0, 16)
}

/** The listings in a command: the rows of an import, or the single one. */
export function listingFieldsIn(act: FactRecord): readonly ListingFields[] {
  if (act.by === undefined) throw new Error(`an unsigned record of ${act.op}`)
  const command = commandIn(act.by.signed)
  const { schema, rows, ...fields } = JSON.parse(command.data ?? '{}') as { schema: 1; rows?: readonly ListingFields[] }
  return rows ?? [fields as ListingFields]
}

/** The listing in this record. `row`: of an import. */
export function listingIn(record: BoardRecord, id: string, row: number): Listing {
  if (record.type !== RecordType.act) throw new Error(`the record of listing ${id} is not an act`)
  const fields = listingFieldsIn(record)[row]
  if (fields === undefined) throw new Error(`the record of listing ${id} has no row ${row}`)
  return listingOf(id, fields, record.at)
}

/** `weather-api-1a2b3c`: readable, and unique to this command. */
export function publishedId(name: string, event: string): string {
  const slug = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 48)
    .replace(/-+$/, '')
  return `${slug === '' ? 'tool' : slug}-${event.slice(0, 6)}`
}
