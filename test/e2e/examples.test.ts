/** Every operation’s documented example works: it is sent as documented, with real ids in place of the invented ones. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { titleOf } from '../../src/docs/command-shapes.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { schemaErrors } from '../support/json-schema.ts'
import { setups, World } from '../support/operation-setups.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const operator = person('the operator')
let board: Board
let client: Client
let world: World

beforeAll(async () => {
  board = await startBoard({
    directory: boardDirectory(),
    env: { OPERATORS: operator.id, SHARDS: '2', BROADSIDE_LOOPBACK: '1' },
  })
  client = await Client.of(board)
  world = new World(client, operator)
  // The first head of the log has one leaf, which the examples of the log refer to.
  await world.post()
})
afterAll(() => client.close())

test('every operation has a setup here, and every setup an operation', () => {
  expect(Object.keys(setups).sort()).toEqual(operations.map(({ name }) => name).sort())
})

describe.each(operations.filter(({ name }) => setups[name] !== undefined).map((each) => [each.name, each] as const))(
  '%s',
  (name, operation) => {
    test('returns the documented answer, in the documented shape', async () => {
      const ready = await setups[name]!(world)
      // Only fields that the example names may be replaced.
      expect(Object.keys(operation.example)).toEqual(expect.arrayContaining(Object.keys(ready.fields ?? {})))
      const answer = await world.send(operation, ready)
      expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
      expect(schemaErrors(`${titleOf(name)}Result`, answer.data)).toEqual([])
    })

    test('accepts its example by its aliases too', async () => {
      for (const alias of operation.aliases ?? []) {
        const { fields, ...ready } = await setups[name]!(world)
        const answer = await world.send(operation, { ...ready, fields: { ...fields, operation: alias } })
        expect([alias, answer.status]).toEqual([alias, 200])
      }
    })

    test('answers the same query by plain GET, if it has one', async () => {
      if (operation.get === undefined) return
      const { fields, meanwhile } = await setups[name]!(world)
      const given: Record<string, unknown> = { ...operation.example, ...fields }
      const data = JSON.parse((given.data as string | undefined) ?? '{}') as Record<string, unknown>
      const query = new URLSearchParams()
      for (const { name: parameter, field } of operation.get.query) {
        const value = field.startsWith('data.') ? data[field.slice(5)] : given[field]
        if (value !== undefined && !Array.isArray(value)) query.set(parameter, String(value))
      }
      if (meanwhile !== undefined) query.delete('wait')
      const path = operation.get.path.replace(/\{(\w+)\}/, (_, field: string) => String(given[field]))
      const answer = await client.get(`${path}${query.size === 0 ? '' : `?${query}`}`)
      expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
      expect(schemaErrors(`${titleOf(name)}Result`, answer.data)).toEqual([])
    })
  },
)
