/** /openapi.json is a description that third-party tools accept, and it matches the interface. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectralCore from '@stoplight/spectral-core'
import spectralRulesets from '@stoplight/spectral-rulesets'
import { describe, expect, test, vi } from 'vitest'
import type { Command } from '../../../actors/kernel/fields.ts'
import { isSigned } from '../../../actors/kernel/operation.ts'
import { operationByName, operations } from '../../../actors/operations.ts'
import { hookKinds } from '../../../actors/webhooks/kind-names.ts'
import { openapi } from '../../../src/board/openapi.ts'
import { pages } from '../../../src/board/pages.ts'
import { checkOperation } from '../../../src/command/check.ts'
import { titleOf } from '../../../src/docs/command-shapes.ts'
import { type Json, plainSchema } from '../../../src/format/plain-schema.ts'
import { decodeBytes32, decodeBytes64, signingBytes } from '../../../src/format/signing.ts'
import { inputOf } from '../../../src/mcp/tool-list.ts'
import { createOpensslBackend } from '../../../src/verify/backends.ts'
import { faultsOfRe2, missingForGo, skipNote, skipWithout } from '../../peers/peers.ts'
import { document, hasShape, serviceId, shapes } from '../../support/json-schema.ts'

// The third-party rules are many and take a while on a busy machine.
vi.setConfig({ testTimeout: 300_000 })

type Path = Readonly<
  Record<string, { readonly operationId: string; readonly responses: Json; readonly parameters?: readonly Json[] }>
>
const paths = document.paths as Readonly<Record<string, Path>>
const responses = (document.components as { readonly responses: Readonly<Record<string, Json>> }).responses

/** For a board that sells its tools: its description contains everything that others have. */
const sold = { micros: 1_000, network: 'eip155:8453' }

/** At the default address of a board, and at that of a public one. */
const addresses = ['http://127.0.0.1:8787', 'https://board.example.net']

// Except for one thing: a WebSocket begins with status 101, and the rules want a 200.
test.each(addresses)('Redocly’s recommended rules find nothing wrong at %s', async (address) => {
  const config = await createConfig({ extends: ['recommended'] })
  const source = JSON.stringify(openapi({ address, serviceId, sold, witnesses: true }))
  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
  const found = problems.map(({ ruleId, message, severity }) => ({ ruleId, message, severity }))
  expect(found).toEqual([expect.objectContaining({ ruleId: 'operation-2xx-response' })])
})

test.each(addresses)('Spectral’s OpenAPI rules find nothing wrong at %s', async (address) => {
  const spectral = new spectralCore.Spectral()
  spectral.setRuleset({ extends: [spectralRulesets.oas as never] })
  const problems = await spectral.run(JSON.stringify(openapi({ address, serviceId, sold, witnesses: true })))
  const found = problems.map(({ code, path }) => ({ code, path: path.join('/') }))
  expect(found).toEqual([{ code: 'operation-success-response', path: 'paths//v1/stream/get/responses' }])
})

test('it is version 1.0.0 of the description of Broadside, in OpenAPI 3.1.0, for the board it came from', () => {
  expect(document).toMatchObject({
    openapi: '3.1.0',
    info: { title: 'Broadside', version: '1.0.0' },
    servers: [{ url: 'https://board.example.org' }],
  })
})

test('every documented endpoint is there, each with one method and a unique name', () => {
  expect(
    Object.entries(paths)
      .flatMap(([path, methods]) => Object.keys(methods).map((each) => `${each} ${path}`))
      .sort(),
  ).toMatchInlineSnapshot(`
    [
      "get /",
      "get /.well-known/agent-card.json",
      "get /.well-known/mcp/server.json",
      "get /.well-known/oauth-authorization-server",
      "get /.well-known/oauth-protected-resource",
      "get /.well-known/oauth-protected-resource/mcp",
      "get /.well-known/openid-configuration",
      "get /.well-known/security.txt",
      "get /a/{id}",
      "get /account",
      "get /account/rooms",
      "get /account/webhooks",
      "get /agents",
      "get /api/changes",
      "get /api/credits",
      "get /api/docs",
      "get /api/docs-history/{target}",
      "get /api/docs/{target}",
      "get /api/events",
      "get /api/events/{event_id}",
      "get /api/history/{event_id}",
      "get /api/identities",
      "get /api/identities/{target}",
      "get /api/log/checkpoint",
      "get /api/log/consistency",
      "get /api/log/history",
      "get /api/log/leaves",
      "get /api/log/proof",
      "get /api/log/witnesses",
      "get /api/members",
      "get /api/moderation",
      "get /api/modlog",
      "get /api/pages",
      "get /api/reviews",
      "get /api/room",
      "get /api/rooms",
      "get /api/stats",
      "get /api/thread/{event_id}",
      "get /api/threads",
      "get /api/tool",
      "get /api/tools",
      "get /api/updates",
      "get /api/work/{event_id}",
      "get /api/work/{event_id}/history",
      "get /api/works",
      "get /assets/{file}",
      "get /c64/{command}",
      "get /capabilities",
      "get /client/broadside.js",
      "get /client/broadside.py",
      "get /client/v1.js",
      "get /contact",
      "get /d/{doc}",
      "get /d/{doc}/history",
      "get /docs",
      "get /docs/broadside.mjs",
      "get /docs/broadside.py",
      "get /docs/broadside.sh",
      "get /docs/credits",
      "get /docs/import",
      "get /docs/limits",
      "get /docs/refusals",
      "get /docs/signing",
      "get /docs/works",
      "get /docs/{operation}",
      "get /e/{event_id}",
      "get /e/{event_id}.atom",
      "get /e/{event_id}.json",
      "get /e/{event_id}/history",
      "get /e/{event_id}/line",
      "get /e/{event_id}/preview.png",
      "get /e/{event_id}/proof",
      "get /embed",
      "get /embed/v1.js",
      "get /embed/v1.json",
      "get /export/board-1.schema.json",
      "get /faq",
      "get /favicon.ico",
      "get /for-agents",
      "get /healthz",
      "get /i/{identity}",
      "get /i/{identity}.atom",
      "get /i/{identity}.json",
      "get /icon.svg",
      "get /inbox",
      "get /llms.txt",
      "get /log",
      "get /log/policy",
      "get /log/vkey",
      "get /log/{log}/checkpoint",
      "get /log/{log}/tile/entries/{index}",
      "get /log/{log}/tile/{level}/{index}",
      "get /log/{log}/vkey",
      "get /mcp",
      "get /metrics",
      "get /moderate",
      "get /moderation",
      "get /oauth/authorize",
      "get /oauth/authorize/{uid}",
      "get /oauth/interaction/{uid}",
      "get /oauth/jwks",
      "get /oauth/sign-in-page.js",
      "get /oembed",
      "get /openapi.json",
      "get /opensearch.xml",
      "get /preview.png",
      "get /robots.txt",
      "get /room/{room}",
      "get /room/{room}.atom",
      "get /room/{room}.json",
      "get /room/{room}/preview.png",
      "get /rooms",
      "get /search",
      "get /sitemap.xml",
      "get /tail/{room}",
      "get /time",
      "get /tools",
      "get /tools/{id}",
      "get /v1/export",
      "get /v1/stream",
      "get /work",
      "get /work.atom",
      "get /work.json",
      "get /work/{id}",
      "post /c64/{command}",
      "post /in/{receiver}/{secret}",
      "post /mcp",
      "post /oauth/interaction/{uid}",
      "post /oauth/register",
      "post /oauth/revoke",
      "post /oauth/token",
      "post /preview",
      "post /v1/command",
      "post /v1/commands",
      "put /in/{receiver}/{secret}",
    ]
  `)
  const ids = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId))
  expect(new Set(ids).size).toBe(ids.length)
})

test('a board that sells its tools describes them as such, with prices', () => {
  const added = openapi({ address: 'https://board.example.org', serviceId, sold }).paths as typeof paths
  expect(Object.keys(added).filter((path) => !(path in paths))).toEqual(['/pay/tools/{id}'])
  for (const each of Object.values(added['/pay/tools/{id}']!)) {
    expect(Object.keys(each.responses).sort()).toEqual(['200', '400', '402', '403', '429', '503'])
    expect(JSON.stringify(each)).toContain('0.001 dollars of USDC per call, on eip155:8453')
  }
})

test('every endpoint answers 200, 400, 403 or 429, and a 429 says how long to wait', () => {
  // Range requests, a moved page and a missing tile have their own statuses.
  const own: Readonly<Record<string, readonly string[]>> = { '/a/{id}': ['206', '416'], '/tools/{id}': ['308'] }
  const ofStandards = /^\/(?:mcp$|oauth\/|\.well-known\/)/
  for (const [path, methods] of Object.entries(paths)) {
    if (ofStandards.test(path)) continue
    const more = path.startsWith('/log/{log}/') ? ['404'] : (own[path] ?? [])
    const expected = [path === '/v1/stream' ? '101' : '200', '400', '403', '429', ...more].sort()
    for (const each of Object.values(methods))
      expect([path, Object.keys(each.responses).sort()]).toEqual([path, expected])
  }
  expect(responses.TooManyRequests).toMatchObject({
    headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } },
  })
})

test('the interface’s paging parameters are there', () => {
  const parametersOf = (path: string) =>
    paths[path]!.get!.parameters!.map(({ name, in: where, required = false }) => ({ name, where, required }))
  const paging = [
    { name: 'cursor', where: 'query', required: false },
    { name: 'limit', where: 'query', required: false },
  ]
  expect(parametersOf('/api/pages')).toEqual([{ name: 'room', where: 'query', required: true }, ...paging])
  expect(parametersOf('/api/thread/{event_id}')).toEqual([
    { name: 'event_id', where: 'path', required: true },
    { name: 'order', where: 'query', required: false },
    { name: 'start', where: 'query', required: false },
    ...paging,
  ])
  const limit = paths['/api/pages']!.get!.parameters!.find(({ name }) => name === 'limit')
  expect(limit).toMatchObject({ schema: { type: 'integer', minimum: 1, maximum: 200, default: 50 } })
})

test('a command has the fields of the interface and no others, and only operation is required', () => {
  const command = shapes.Command as { properties: Record<string, { type: string; items?: { type: string } }> }
  const types = Object.entries(command.properties).map(([name, { type, items }]) =>
    items === undefined ? `${name} ${type}` : `${name} ${type} of ${items.type}`,
  )
  const strings =
    'operation cursor data event_id filename handle kind media_type nonce page proof public_key query reason ' +
    'reply_to request_id room signature target text to visibility'
  expect(types.sort()).toEqual(
    [
      ...strings.split(' ').map((name) => `${name} string`),
      ...['amount', 'before', 'limit', 'timestamp', 'ttl'].map((name) => `${name} integer`),
      'attachments array of string',
      'members array of string',
    ].sort(),
  )
  expect(command).toMatchObject({ additionalProperties: false, required: ['operation'] })
  expect(command.properties.attachments).toMatchObject({ maxItems: 8 })
})

test('every operation has a shape for its command and its answer, and an example that works as it is', () => {
  const post = paths['/v1/command']!.post! as unknown as {
    'x-operations': Json
    requestBody: { content: { 'application/json': { examples: Record<string, { value: Command }> } } }
  }
  const { examples } = post.requestBody.content['application/json']
  expect(Object.keys(examples)).toEqual(operations.map(({ name }) => name))
  expect(Object.keys(post['x-operations'])).toEqual(operations.map(({ name }) => name))
  const openssl = createOpensslBackend()
  for (const [name, { value }] of Object.entries(examples)) {
    expect(shapes[`${titleOf(name)}Result`]).toBeDefined()
    expect({ name, fits: hasShape(`${titleOf(name)}Request`, value) && hasShape('Command', value) }).toEqual({
      name,
      fits: true,
    })
    expect(checkOperation(value)).toMatchObject({ ok: true })
    if (!isSigned(operationByName.get(name)!)) continue
    const { signature, public_key } = value as { signature: string; public_key: string }
    const bytes = signingBytes(serviceId, value)
    expect({ name, good: openssl.verify(decodeBytes64(signature)!, bytes, decodeBytes32(public_key)!) }).toEqual({
      name,
      good: true,
    })
  }
})

test('the requests that a webhook receives are described: its challenge, and each kind of event', () => {
  expect(Object.keys(document.webhooks as Json)).toEqual(['verification', ...hookKinds])
})

test('no shape is ambiguous: there is no oneOf and no anyOf', () => {
  expect(JSON.stringify(document)).not.toMatch(/"(oneOf|anyOf)":/)
})

/** Everything inside a value, with its path. */
function* inside(
  value: unknown,
  place: readonly string[] = [],
): Generator<{ place: readonly string[]; value: unknown }> {
  yield { place, value }
  if (typeof value !== 'object' || value === null) return
  for (const [key, each] of Object.entries(value)) yield* inside(each, [...place, key])
}

test('every component is used by a path', () => {
  const components = document.components as Readonly<Record<string, Readonly<Record<string, Json>>>>
  const used = new Set<string>()
  const follow = (value: unknown): void => {
    for (const { place, value: ref } of inside(value)) {
      if (place.at(-1) !== '$ref' || place.some((key) => key.startsWith('x-')) || used.has(String(ref))) continue
      used.add(String(ref))
      const [, , kind = '', name = ''] = String(ref).split('/')
      follow(components[kind]![name])
    }
  }
  follow(document.paths)
  const all = Object.entries(components).flatMap(([kind, named]) =>
    Object.keys(named).map((name) => `#/components/${kind}/${name}`),
  )
  expect(all.filter((each) => !used.has(each))).toEqual([])
})

test('every reference resolves', () => {
  for (const { place, value } of inside(document)) {
    if (place.at(-1) !== '$ref') continue
    let found: unknown = document
    for (const key of String(value).slice(2).split('/')) found = (found as Json)[key]
    expect([value, typeof found]).toEqual([value, 'object'])
  }
})

/** Types that generated clients use, and names that orval and others derive from an operation. */
const globals =
  'Blob File FormData Headers Request Response RequestInit ReadableStream URL URLSearchParams AbortSignal Array ArrayBuffer ' +
  'Boolean Buffer Date Error Function Map Number Object Promise Record Set String Symbol Partial Pick Omit Required Readonly ' +
  'Exclude Extract Awaited NonNullable ReturnType Parameters'
const suffixes = [
  'Result',
  'Params',
  'Body',
  'Response',
  'Error',
  'Headers',
  'QueryResult',
  'MutationResult',
  'MutationBody',
]

test('no component has a name that a generated client uses for something else', () => {
  const taken = new Set(globals.split(' '))
  for (const methods of Object.values(paths))
    for (const { operationId } of Object.values(methods))
      for (const suffix of suffixes) taken.add(operationId.replace(/^./, (first) => first.toUpperCase()) + suffix)
  const components = Object.keys((document.components as { readonly schemas: Json }).schemas)
  expect(components.filter((name) => taken.has(name))).toEqual([])
})

/** Patterns of a document, including those of keys. */
function patternsIn(published: unknown): string[] {
  return [...inside(published)].flatMap(({ place, value }) => {
    if (place.at(-1) === 'pattern' && typeof value === 'string') return [value]
    return place.at(-1) === 'patternProperties' ? Object.keys(value as object) : []
  })
}

const published = {
  openapi: openapi({ address: addresses[1]!, serviceId, sold, witnesses: true }),
  capabilities: operations.flatMap(({ data }) => (data === undefined ? [] : [plainSchema(data)])),
  mcp: operations.map((operation) => inputOf(operation, [])),
}

test('every pattern means the same to ECMA-262 and RE2: no look-around, no back reference, no long count, no \\u', () => {
  const patterns = Object.values(published).flatMap(patternsIn)
  expect(patterns.length).toBeGreaterThan(100)
  const odd = patterns.filter((each) => {
    const counts = [...each.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].flatMap(([, from, to]) => [
      Number(from),
      Number(to ?? 0),
    ])
    return /\(\?[^:]|\\[1-9kuUzZ]/.test(each) || counts.some((count) => count > 1_000)
  })
  expect(odd).toEqual([])
  // Each still has to match the caller's own text.
  for (const each of patterns) expect(() => new RegExp(each, 'u')).not.toThrow()
})

const missingGo = missingForGo()
describe.skipIf(skipWithout(missingGo))(`with Go${skipNote(missingGo)}`, () => {
  test('every pattern compiles in RE2', () => {
    const folder = mkdtempSync(join(tmpdir(), 'broadside-patterns-'))
    expect(faultsOfRe2([...new Set(Object.values(published).flatMap(patternsIn))], folder)).toEqual([])
    rmSync(folder, { recursive: true })
  })
})

test('every path that the board answers is described', () => {
  const root = new URL('../../../src/', import.meta.url)
  const sources = readdirSync(root, { encoding: 'utf8', recursive: true }).filter((name) =>
    /^(server\.ts|http\/.*\.ts|.*[/-]?routes\.ts)$/.test(name),
  )
  const doors = sources.flatMap((name) =>
    [...readFileSync(new URL(name, root), 'utf8').matchAll(/^\s+'(\/[^']*)':/gm)].map(([, path]) => path!),
  )
  const described = Object.keys(published.openapi.paths as Json)
  expect(doors.length).toBeGreaterThan(20)
  // An endpoint that ends with a slash takes what follows it.
  const missing = doors.filter(
    (door) => !described.some((path) => (door.endsWith('/') ? path.startsWith(door) : path === door)),
  )
  expect(missing).toEqual([])
  const ofOperations = operations.flatMap(({ get }) => (get === undefined ? [] : [get.path]))
  expect(ofOperations.filter((path) => !described.includes(path))).toEqual([])
  expect(pages.map(({ path }) => path.replace('...}', '}')).filter((path) => !described.includes(path))).toEqual([])
})

test('every API path mentioned in a source, a test, a bench or a document is described', () => {
  const root = new URL('../../../', import.meta.url)
  const inFolders = ['actors', 'bench', 'src', 'test'].flatMap((folder) =>
    readdirSync(new URL(folder, root), { encoding: 'utf8', recursive: true })
      .filter((name) => /\.(ts|md)$/.test(name) && !name.includes('node_modules'))
      .map((name) => `${folder}/${name}`),
  )
  const described = Object.keys(paths).map((path) => path.replace(/\/\{.*/, ''))
  const isDescribed = (path: string) =>
    described.some((each) => path === each || path.startsWith(`${each}/`) || each.startsWith(`${path}/`))
  // Not preceded by a host. A query distinguishes a path from a word.
  const named = ['README.md', 'HOSTING.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...inFolders].flatMap(
    (file) =>
      [...readFileSync(new URL(file, root), 'utf8').matchAll(/(?<![\w.])(\/api\/[a-z_]+(?:\/[a-z_]+)*)[?$]/g)].map(
        ([, path]) => ({ file, path: path! }),
      ),
  )
  expect(named.length).toBeGreaterThan(100)
  expect(named.filter(({ path }) => !isDescribed(path))).toEqual([])
})
