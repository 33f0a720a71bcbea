/** /openapi.json is a description that other people's tools accept, and it says what the interface promises. */
import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectralCore from '@stoplight/spectral-core'
import spectralRulesets from '@stoplight/spectral-rulesets'
import { expect, test, vi } from 'vitest'
import { type Command, checkOperation } from '../../../src/command/check.ts'
import { decodeBytes32, decodeBytes64 } from '../../../src/format/encoding.ts'
import { signingBytes } from '../../../src/format/signing.ts'
import { operationByName, operations } from '../../../src/operations/index.ts'
import { isSigned } from '../../../src/operations/operation.ts'
import { createOpensslBackend } from '../../../src/verify/openssl.ts'
import { titleOf } from '../../../src/views/openapi/command-shapes.ts'
import { openapi } from '../../../src/views/openapi.ts'
import type { Json } from '../../../src/views/plain-schema.ts'
import { document, hasShape, serviceId, shapes } from '../../support/json-schema.ts'

// The rules of others are many: on a busy machine they take their time.
vi.setConfig({ testTimeout: 300_000 })

type Path = Readonly<
  Record<string, { readonly operationId: string; readonly responses: Json; readonly parameters?: readonly Json[] }>
>
const paths = document.paths as Readonly<Record<string, Path>>
const responses = (document.components as { readonly responses: Readonly<Record<string, Json>> }).responses

/** Of a board that sells its tools: its description has all that another's has. */
const sold = { micros: 1_000, network: 'eip155:8453' }

/** On the address that a board has by default, and on one that a public board has. */
const addresses = ['http://127.0.0.1:8787', 'https://board.example.net']

test.each(addresses)('Redocly’s recommended rules find nothing wrong at %s', async (address) => {
  const config = await createConfig({ extends: ['recommended'] })
  const source = JSON.stringify(openapi({ address, serviceId, sold }))
  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
  // One path takes every command, so the shapes of single ones are reached by x-operations, which Redocly does not follow.
  const byExtension = /^Component: "\w+(Request|Result)" is never used\.$/
  const others = problems.filter(
    ({ ruleId, message }) => ruleId !== 'no-unused-components' || !byExtension.test(message),
  )
  expect(others.map(({ ruleId, message, severity }) => ({ ruleId, message, severity }))).toEqual([])
})

test.each(addresses)('Spectral’s OpenAPI rules find nothing wrong at %s', async (address) => {
  const spectral = new spectralCore.Spectral()
  spectral.setRuleset({ extends: [spectralRulesets.oas as never] })
  const problems = await spectral.run(JSON.stringify(openapi({ address, serviceId, sold })))
  expect(problems.map(({ code, message, path }) => ({ code, message, path: path.join('/') }))).toEqual([])
})

test('it is version 1.0.0 of the description of Broadside, in OpenAPI 3.1.0, for the board it came from', () => {
  expect(document).toMatchObject({
    openapi: '3.1.0',
    info: { title: 'Broadside', version: '1.0.0' },
    servers: [{ url: 'https://board.example.org' }],
  })
})

test('every documented endpoint is there, each with one method and a name of its own', () => {
  expect(
    Object.entries(paths)
      .flatMap(([path, methods]) => Object.keys(methods).map((each) => `${each} ${path}`))
      .sort(),
  ).toMatchInlineSnapshot(`
    [
      "get /a/{id}",
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
      "get /api/modlog",
      "get /api/pages",
      "get /api/reviews",
      "get /api/room",
      "get /api/rooms",
      "get /api/stats",
      "get /api/thread/{event_id}",
      "get /api/tool",
      "get /api/tools",
      "get /api/updates",
      "get /api/work/{event_id}",
      "get /api/work/{event_id}/history",
      "get /api/works",
      "get /c64/{command}",
      "get /capabilities",
      "get /embed/v1.js",
      "get /for-agents",
      "get /healthz",
      "get /llms.txt",
      "get /metrics",
      "get /openapi.json",
      "get /tail/{room}",
      "get /time",
      "get /v1/export",
      "get /work.atom",
      "post /in/{receiver}/{secret}",
      "post /v1/command",
    ]
  `)
  const ids = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId))
  expect(new Set(ids).size).toBe(ids.length)
})

test('where the tools of the board are sold its description says so, and for what', () => {
  const added = openapi({ address: 'https://board.example.org', serviceId, sold }).paths as typeof paths
  expect(Object.keys(added).filter((path) => !(path in paths))).toEqual(['/pay/tools/{id}'])
  for (const each of Object.values(added['/pay/tools/{id}']!)) {
    expect(Object.keys(each.responses).sort()).toEqual(['200', '400', '402', '403', '429', '503'])
    expect(JSON.stringify(each)).toContain('0.001 dollars of USDC a call, on eip155:8453')
  }
})

test('every endpoint answers 200, 400, 403 or 429, and a 429 says how long to wait', () => {
  // A part of a file is asked for by a header, and has statuses of its own.
  const own: Readonly<Record<string, readonly string[]>> = { '/a/{id}': ['206', '416'] }
  for (const [path, methods] of Object.entries(paths)) {
    const expected = ['200', '400', '403', '429', ...(own[path] ?? [])].sort()
    for (const each of Object.values(methods)) expect(Object.keys(each.responses).sort()).toEqual(expected)
  }
  expect(responses.TooManyRequests).toMatchObject({
    headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } },
  })
})

test('the paging parameters of the interface are there', () => {
  const parametersOf = (path: string) =>
    paths[path]!.get!.parameters!.map(({ name, in: where, required = false }) => ({ name, where, required }))
  const paging = [
    { name: 'cursor', where: 'query', required: false },
    { name: 'limit', where: 'query', required: false },
  ]
  expect(parametersOf('/api/pages')).toEqual([{ name: 'room', where: 'query', required: true }, ...paging])
  expect(parametersOf('/api/thread/{event_id}')).toEqual([
    { name: 'event_id', where: 'path', required: true },
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

test('every operation has a shape for its command and its answer, and an example that is sent as it stands', () => {
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

test('no shape is a riddle: there is no oneOf and no anyOf', () => {
  expect(JSON.stringify(document)).not.toMatch(/"(oneOf|anyOf)":/)
})
