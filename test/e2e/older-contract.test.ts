/** Everything that programs rely on since release 1.0.0 is still there: operations, paths, fields, codes, limits and metrics. */
import { beforeAll, expect, test, vi } from 'vitest'
import { metricsIn, readFixture } from '../fixtures/fixture.ts'
import { Description, type Json, removedFrom, removedFromSchema } from '../fixtures/removals.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Capabilities = {
  readonly operations: readonly (Json & { readonly name: string; readonly required: string[]; readonly data?: Json })[]
}
type Operation = { readonly parameters?: readonly Json[]; readonly requestBody?: Json; readonly responses: Json }

const older = new Description(readFixture('openapi.json.gz'))
const olderCapabilities = (JSON.parse(readFixture('capabilities.json.gz')) as { data: Capabilities }).data
let client: Client
let newer: Description
let capabilities: Capabilities

beforeAll(async () => {
  const board = await startBoard({ directory: boardDirectory(), env: { BROADSIDE_LIMITS: 'on' } })
  client = await Client.of(board)
  newer = new Description((await client.get('/openapi.json')).text)
  capabilities = (await client.get('/capabilities')).data as unknown as Capabilities
})

test('/capabilities has every key, operation, field, code, limit and path', () => {
  const lost: string[] = []
  removedFrom(olderCapabilities, capabilities, { path: '', lost })
  expect(lost).toEqual([])
})

/**
 * The board's own room has unsigned acts, for which GET /api/modlog answered 500 in 1.0.0. Their entries name the actor and have no
 * signature; entries of signed acts have every field they had.
 */
const unsignedActs = ['signature', 'signed_payload', 'public_key'].map((field) => `no longer always has ${field}`)
const isOfUnsignedAct = (lost: string) => /modlog/.test(lost) && unsignedActs.some((words) => lost.endsWith(words))

test('no operation requires more, accepts less data or answers with less', () => {
  const lost: string[] = []
  for (const operation of olderCapabilities.operations) {
    const { name } = operation
    const now = capabilities.operations.find((each) => each.name === name)!
    const added = now.required.filter((field) => !operation.required.includes(field))
    lost.push(...added.map((field) => `${name} now requires ${field}`))
    const compared = { older, newer, lost }
    if (operation.data !== undefined)
      removedFromSchema(compared, [operation.data, now.data!], { path: `${name} data`, way: 'in' })
    const results = [older.at(operation.result as string), newer.at(now.result as string)] as const
    removedFromSchema(compared, results, { path: name, way: 'out' })
  }
  expect(lost.filter((each) => !isOfUnsignedAct(each))).toEqual([])
})

test('/openapi.json has every path, parameter, status and answer field', () => {
  const lost: string[] = []
  for (const [path, methods] of Object.entries(older.paths)) {
    for (const [method, before] of Object.entries(methods) as [string, Operation][]) {
      const after = newer.paths[path]?.[method] as Operation | undefined
      if (after === undefined) lost.push(`${method} ${path}`)
      else lost.push(...removedFromEndpoint(`${method} ${path}`, before, after))
    }
  }
  expect(lost.filter((each) => !isOfUnsignedAct(each))).toEqual([])
})

function removedFromEndpoint(path: string, before: Operation, after: Operation): string[] {
  const lost: string[] = []
  const compared = { older, newer, lost }
  const nameOf = (parameter: Json) => `${parameter.in} ${parameter.name}`
  const [old, now] = [before, after].map(
    ({ parameters = [] }) => new Map(parameters.map((each) => [nameOf(each), each])),
  ) as [Map<string, Json>, Map<string, Json>]
  for (const name of old.keys()) if (!now.has(name)) lost.push(`${path} takes no ${name}`)
  for (const [name, { required }] of now)
    if (required === true && old.get(name)?.required !== true) lost.push(`${path} now requires ${name}`)
  for (const [status, answer] of Object.entries(before.responses)) {
    const found = after.responses[status] as Json | undefined
    if (found === undefined) lost.push(`${path} has no ${status}`)
    else {
      const [was, is] = [jsonSchemaOf(older, answer as Json), jsonSchemaOf(newer, found)]
      if (was !== undefined && is === undefined) lost.push(`${path} ${status} is no JSON`)
      else if (was !== undefined) removedFromSchema(compared, [was, is!], { path: `${path} ${status}`, way: 'out' })
    }
  }
  if (before.requestBody === undefined) return lost
  const [was, is] = [jsonSchemaOf(older, before.requestBody), jsonSchemaOf(newer, after.requestBody ?? {})]
  if (was !== undefined && is !== undefined) removedFromSchema(compared, [was, is], { path, way: 'in' })
  return lost
}

function jsonSchemaOf(description: Description, answer: Json): Json | undefined {
  const { content } = description.resolved(answer) as { content?: Readonly<Record<string, { schema: Json }>> }
  return content?.['application/json']?.schema
}

test('/metrics has every metric, of the same kind and with the same label', async () => {
  await client.send('{}')
  const now = metricsIn((await client.get('/metrics')).text)
  expect(now).toMatchObject(JSON.parse(readFixture('metrics.json')) as object)
})

test('a removal is detected', () => {
  const without = (name: string) => {
    const copy = JSON.parse(JSON.stringify(olderCapabilities)) as Json
    const lost: string[] = []
    const [operation] = (copy.operations as Json[]).filter((each) => each.name === 'post') as Record<string, unknown>[]
    operation!.refusals = (operation!.refusals as string[]).filter((code) => code !== name)
    operation!.optional = (operation!.optional as string[]).filter((field) => field !== name)
    removedFrom(olderCapabilities, copy, { path: '', lost })
    return lost
  }
  expect(without('wrong_state')).toEqual(['.operations[post].refusals[wrong_state]'])
  expect(without('reply_to')).toEqual(['.operations[post].optional[reply_to]'])
  const lost: string[] = []
  const event = older.at('#/components/schemas/Event')
  const { text: _, ...properties } = event.properties as Json
  removedFromSchema({ older, newer: older, lost }, [event, { ...event, properties }], { path: 'Event', way: 'out' })
  expect(lost).toEqual(['Event: no property text'])
})
