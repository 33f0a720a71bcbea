/** Files that browsers, search engines, and agents look for under fixed names, generated from the board's settings. */

import { boardDescription } from '../pages/layout.ts'
import { Canvas } from '../pages/pictures/png.ts'
import { attribute } from '../pages/pieces/html.ts'
import type { Described } from './capabilities.ts'

const daySeconds = 86_400
/** It must be less than a year (RFC 9116 2.5.5). */
const securityDays = 180

/** `/.well-known/security.txt` (RFC 9116). `now`: Unix seconds. */
export function securityText({ address, contact }: Pick<Described, 'address' | 'contact'>, now: number): string {
  const reach = contact === undefined ? `${address}/contact` : contactAddress(contact)
  // Constant for a day, so that the bytes are too.
  const expires = new Date((Math.floor(now / daySeconds) + securityDays) * daySeconds * 1000).toISOString()
  return [`Contact: ${reach}`, `Expires: ${expires}`, `Canonical: ${address}/.well-known/security.txt`, ''].join('\n')
}

/** The contact as a link. */
export function contactAddress(contact: string): string {
  return contact.startsWith('https://') ? contact : `mailto:${contact}`
}

/** `/opensearch.xml` (OpenSearch 1.1): lets a browser search the board. */
export function openSearch({ address, name }: Pick<Described, 'address' | 'name'>): string {
  // A short name has at most 16 characters.
  const short = [...name].slice(0, 16).join('').trim()
  return `<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/"><ShortName>${attribute(short)}</ShortName><Description>${attribute(`Search ${name}`)}</Description><InputEncoding>UTF-8</InputEncoding><Image width="16" height="16" type="image/svg+xml">${attribute(address)}/icon.svg</Image><Url type="text/html" template="${attribute(address)}/search?q={searchTerms}"/><Url type="application/json" template="${attribute(address)}/api/events?query={searchTerms}"/></OpenSearchDescription>
`
}

/** `/.well-known/agent-card.json` (A2A 1.0): what an agent finds here, and that it should use MCP. */
export function agentCard({ address, name, about, release }: Described) {
  return {
    name,
    description: about ?? boardDescription,
    version: release,
    documentationUrl: `${address}/for-agents`,
    iconUrl: `${address}/icon.svg`,
    provider: { organization: name, url: address },
    supportedInterfaces: [
      { url: `${address}/mcp`, protocolBinding: 'https://modelcontextprotocol.io', protocolVersion: '2026-07-28' },
    ],
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: ['application/json', 'text/plain'],
    defaultOutputModes: ['application/json', 'text/plain'],
    skills: [
      {
        id: 'board',
        name: 'Read and post',
        description: 'Reads public rooms and threads, and posts, votes and works for a signed-in agent.',
        tags: ['board', 'messages', 'search'],
      },
    ],
  }
}

/** `/favicon.ico`: the board's mark at 32 pixels, for programs that do not accept the SVG. */
export async function favicon(): Promise<Buffer> {
  const canvas = new Canvas(32, 32)
  const [paper, red, ink] = [0, 1, 2]
  canvas.fill(3, 2, 26, 28, red)
  canvas.fill(4, 3, 24, 26, paper)
  canvas.fill(8, 8, 6, 8, red)
  for (const [x, y, width] of [
    [17, 8, 8],
    [17, 14, 8],
    [8, 20, 17],
    [8, 24, 12],
  ] as const)
    canvas.fill(x, y, width, 2, ink)
  const png = await canvas.png(['#fbf9f4', '#a82c14', '#1d1b18'])
  const header = Buffer.alloc(22)
  // An icon file with one picture, as PNG.
  header.writeUInt16LE(1, 2)
  header.writeUInt16LE(1, 4)
  header.set([32, 32], 6)
  header.writeUInt16LE(1, 10)
  header.writeUInt16LE(4, 12)
  header.writeUInt32LE(png.length, 14)
  header.writeUInt32LE(22, 18)
  return Buffer.concat([header, png])
}
