/**
 * Converts lists of tools published by others into rows of the directory. Formats are recognized by their structure:
 *
 * | a value with | is |
 * |---|---|
 * | `id`, `kind`, `type` | a row of a flat list: its content is taken, in our words |
 * | `resource`, `accepts` | an item of an x402 Bazaar (`/discovery/resources`) |
 * | `serviceUrl` or `endpoints` as a list | a service of the MPP directory: one row, and one for each endpoint |
 * | `server`, or `name` with `remotes` or `packages` | an entry of the MCP Registry (`server.json`) |
 * | `items`, `resources`, `services` or `servers` as a list | a response of one of these with many of them |
 *
 * All texts are untrusted: they are cut to their limits, and no link in them is followed.
 */

import type { ListingFields } from '../../actors/tools/listing.ts'
import { oneLine } from './doc.ts'
import { categoriesOf } from './expansion.ts'
import { networkName, plainPrice } from './prices.ts'

export type ListRow = ListingFields & { readonly id: string; readonly source: string }
/** A string says why it is not a row. */
type RowOrFault = ListRow | string

type Value = Readonly<Record<string, unknown>>

/** The rows in one value of a list. `source`: the name of the list if it does not say so itself. */
export function rowsOf(value: unknown, source: string): RowOrFault[] {
  if (!isRecord(value)) return ['it is not a JSON object']
  for (const name of ['items', 'resources', 'services', 'servers'])
    if (Array.isArray(value[name])) return (value[name] as unknown[]).flatMap((each) => rowsOf(each, source))
  if (typeof value.resource === 'string' && Array.isArray(value.accepts)) return [bazaarRow(value, source)]
  if (isRecord(value.server)) return [registryRow(value.server, source)]
  if (typeof value.serviceUrl === 'string' || Array.isArray(value.endpoints)) return serviceRows(value, source)
  if (typeof value.id === 'string' && typeof value.kind === 'string') return [flatRow(value, source)]
  if (typeof value.name === 'string' && (Array.isArray(value.remotes) || Array.isArray(value.packages)))
    return [registryRow(value, source)]
  return ['it matches no known format of a list: see broadside tools import --help']
}

function flatRow(value: Value, source: string): RowOrFault {
  const { repo } = recordOf(value.source)
  const remote = recordOf(listOf(value.remotes)[0])
  const isFree = value.free === true && value.price === null
  return row({
    id: text(value.id),
    type: text(value.type),
    kind: text(value.kind),
    name: text(value.name),
    description: text(value.description),
    url: text(value.url),
    categories: [text(value.category), ...texts(value.categories)],
    tags: [...texts(value.tags), ...texts(value.networks)],
    method: text(value.method),
    price: isFree ? '0' : value.price,
    priceText: text(value.price_text),
    network: text(value.network),
    protocols: texts(value.protocols),
    output: text(value.output),
    service: text(value.parent),
    mcpUrl: text(remote.url),
    doors: doorsOf(value),
    source: typeof repo === 'string' ? repo : source,
  })
}

/** What an independent list has observed itself. */
function doorsOf(value: Value): ListingFields['doors'] {
  const { alive_last, status_last, checked_at } = recordOf(value.health)
  const at = Math.max(0, Math.floor(Date.parse(text(checked_at)) / 1000)) || 0
  if (alive_last === true && status_last === 402) return [{ door: 'wallet', source: 'outside', checked_at: at }]
  return value.needs_keys === true ? [{ door: 'key', source: 'outside', checked_at: 0 }] : []
}

function bazaarRow(value: Value, source: string): RowOrFault {
  const url = text(value.resource)
  const accepts = listOf(value.accepts).map(recordOf)
  const first = accepts[0] ?? {}
  const metadata = recordOf(value.metadata)
  if (!URL.canParse(url)) return `its resource is not an address: ${oneLine(url).slice(0, 80)}`
  const { host, pathname } = new URL(url)
  const place = `${host}${pathname.replace(/\/+$/, '')}`
  const { input, output } = recordOf(recordOf(recordOf(value.extensions).bazaar).info)
  return row({
    id: `x402:${place}`,
    type: 'offering',
    kind: value.type === 'mcp' ? 'mcp' : 'x402',
    name: text(value.serviceName) || place,
    description: text(value.description) || text(first.description),
    url,
    categories: [text(metadata.category)],
    tags: [...texts(value.tags), ...accepts.map(({ network }) => networkName(text(network)))],
    method: text(recordOf(input).method),
    price: atomicPrice(first),
    priceText: '',
    network: networkName(text(first.network)),
    protocols: ['x402'],
    output: text(value.mimeType) || text(first.mimeType) || text(recordOf(output).type),
    service: '',
    mcpUrl: value.type === 'mcp' ? url : '',
    doors: [],
    source: text(metadata.provider) || source,
  })
}

/** Converts the smallest units of a dollar coin, which has six decimal places. */
function atomicPrice(accept: Value): string | undefined {
  const amount = text(accept.amount) || text(accept.maxAmountRequired)
  const isDollar = /usd/i.test(text(recordOf(accept.extra).name))
  return isDollar && /^\d{1,15}$/.test(amount) ? plainPrice(`${amount}e-6`) : undefined
}

function serviceRows(value: Value, source: string): RowOrFault[] {
  const id = `mpp:${text(value.id)}`
  const methods = Object.keys(recordOf(value.methods))
  const protocols = (methods.length > 0 ? methods : ['tempo']).map((method) => `mpp/${method}`)
  const base = text(value.serviceUrl) || text(value.url)
  const shared = {
    kind: 'mpp',
    categories: texts(value.categories),
    tags: texts(value.tags),
    protocols,
    network: methods[0] ?? 'tempo',
    output: '',
    mcpUrl: '',
    doors: [],
    source: text(value.source) || source,
  } as const
  const offerings = listOf(value.endpoints).map(recordOf)
  const service = row({
    ...shared,
    id,
    type: 'service',
    name: text(value.name),
    description: text(value.description),
    url: base,
    method: '',
    price: undefined,
    priceText: '',
    service: '',
  })
  return [
    service,
    ...offerings.map((offering) => {
      const method = text(offering.method)
      const path = text(offering.path) || text(offering.route)
      const payment = offering.payment === null ? undefined : recordOf(offering.payment)
      return row({
        ...shared,
        id: `${id}:${method.toLowerCase()}${path.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`,
        type: 'offering',
        name: `${text(value.name)} ${method} ${path}`,
        description: text(offering.description),
        url: base.replace(/\/+$/, '') + path,
        protocols: payment === undefined ? [] : protocols,
        method,
        price: payment === undefined ? '0' : unitsPrice(payment),
        priceText: text(payment?.amountHint),
        service: id,
      })
    }),
  ]
}

function unitsPrice({ amount, decimals, dynamic }: Value): string | undefined {
  if (dynamic === true || !/^\d{1,15}$/.test(String(amount ?? ''))) return undefined
  return plainPrice(`${String(amount)}e-${Number(decimals ?? 6)}`)
}

function registryRow(server: Value, source: string): RowOrFault {
  const remote = listOf(server.remotes).map(recordOf)[0]
  const name = text(server.name)
  return row({
    id: `mcpreg:${name}`,
    type: 'service',
    kind: 'mcp',
    name: text(server.title) || name,
    description: text(server.description),
    url: text(remote?.url) || text(server.websiteUrl) || text(recordOf(server.repository).url),
    categories: [],
    tags: [],
    method: '',
    price: undefined,
    priceText: '',
    network: '',
    protocols: ['mcp'],
    output: '',
    service: '',
    mcpUrl: text(remote?.url),
    doors: [],
    source,
  })
}

type Raw = {
  readonly id: string
  readonly type: string
  readonly kind: string
  readonly name: string
  readonly description: string
  readonly url: string
  readonly categories: readonly string[]
  readonly tags: readonly string[]
  readonly method: string
  readonly price: unknown
  readonly priceText: string
  readonly network: string
  readonly protocols: readonly string[]
  readonly output: string
  readonly service: string
  readonly mcpUrl: string
  readonly doors: ListingFields['doors']
  readonly source: string
}

/** Converts a list's values to our words and limits, always with the same order of keys. */
function row(raw: Raw): RowOrFault {
  const name = oneLine(raw.name).slice(0, 200)
  if (raw.id === '') return 'it has no id'
  if (name === '') return `${oneLine(raw.id).slice(0, 80)} has no name`
  const [category = '', ...more] = raw.categories.flatMap(categoriesOf)
  const tags = [...new Set([...more, ...raw.tags.map(slug)])].filter((tag) => tag !== '' && tag !== category)
  const price = typeof raw.price === 'string' || typeof raw.price === 'number' ? plainPrice(raw.price) : undefined
  const said: Value = {
    id: raw.id,
    type: raw.type,
    kind: raw.kind,
    name,
    // Unpaired surrogates must not be signed.
    description: [...raw.description.toWellFormed().replaceAll('\0', '')].slice(0, 1_900).join(''),
    url: address(raw.url),
    category,
    tags: tags.slice(0, 16),
    method: /^(GET|POST|PUT|PATCH|DELETE|HEAD)$/i.test(raw.method) ? raw.method.toUpperCase() : '',
    price,
    price_text: oneLine(raw.priceText).slice(0, 120),
    network: slug(raw.network),
    protocols: raw.protocols.map(slug).filter((each) => each !== ''),
    output: formatName(raw.output),
    doors: raw.doors,
    service: raw.service,
    mcp_url: address(raw.mcpUrl),
    source: oneLine(raw.source).slice(0, 200),
  }
  const isSaid = ([key, value]: [string, unknown]) =>
    key === 'description' || (value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0))
  return Object.fromEntries(Object.entries(said).filter(isSaid)) as ListRow
}

function address(url: string): string {
  return /^https?:\/\/[^\s\0- \x7f]{1,1990}$/.test(url) && URL.canParse(url) ? url : ''
}

function slug(word: string): string {
  return word
    .toLowerCase()
    .replace(/[^a-z0-9+./:_-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 64)
}

/** `application/json; charset=utf-8` -> `json`. */
function formatName(type: string): string {
  const [plain = ''] = type.toLowerCase().split(';')
  const [family = '', name = ''] = plain.trim().split('/')
  if (['image', 'audio', 'video'].includes(family)) return family
  if (name === '' || name === '*') return slug(family)
  if (name === 'plain') return 'text'
  return slug(name.startsWith('vnd.') ? (name.split('.').at(-1) ?? name) : name.replace(/^x-|\+.*$/g, ''))
}

function isRecord(value: unknown): value is Value {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function recordOf(value: unknown): Value {
  return isRecord(value) ? value : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function texts(value: unknown): string[] {
  return listOf(value).filter((each) => typeof each === 'string')
}
