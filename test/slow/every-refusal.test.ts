/** Every refusal that an operation declares can be triggered, has its code, and leaves nothing behind; and there are no others. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { isSigned, type Operation } from '../../actors/kernel/operation.ts'
import { type RefusalCode, statusOf } from '../../actors/kernel/refusals.ts'
import { operationByName, operations } from '../../actors/operations.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, type Fields, newNonce, now, person } from '../support/client.ts'
import { setups, World } from '../support/operation-setups.ts'
import { randomPart } from '../support/random-part.ts'
import { refusalCases } from '../support/refusal-cases.ts'

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
})
afterAll(() => client.close())

type Error = { readonly code: string; readonly message: string; readonly field?: string }

function expectRefusal(answer: Answer, code: string): void {
  expect([answer.status, answer.code, answer.text]).toEqual([
    statusOf[code as RefusalCode],
    code,
    expect.stringContaining('"ok":false'),
  ])
  const { error } = JSON.parse(answer.text) as { error: Error }
  expect(error.message.length).toBeGreaterThan(15)
  if (answer.status === 429) expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
}

test('every declared refusal is triggered here, and every one triggered is declared', () => {
  const declared = operations.flatMap(({ name, refusals }) => refusals.map((code) => `${name} ${code}`))
  const known = Object.entries(refusalCases).flatMap(([name, codes]) =>
    Object.keys(codes).map((code) => `${name} ${code}`),
  )
  expect(known.sort()).toEqual([...new Set(declared)].sort())
})

/** Operations whose `wrong_state` has no way out: their effect is already in place, or somebody else has to act. */
const withoutWayOut: ReadonlySet<string> = new Set([
  'delegation.revoke',
  'identity.unsuspend',
  'room.invite.create',
  'room.restore',
  'report.resolve',
  'event.redact',
  'vote',
  'conversation.respond',
  'room.read_token',
  'webhook.create',
])

describe.each(Object.entries(refusalCases))('%s', (name, codes) => {
  test.each(Object.entries(codes))(
    'is refused as %s, and for a wrong state with the operation that leads out of it',
    async (code, way) => {
      const answer = await way(world)
      expectRefusal(answer, code)
      const words = (JSON.parse(answer.text) as { error: Error }).error.message.match(/[a-z]+(\.[a-z_]+)+/g) ?? []
      const namesNone = words.every((word) => !operationByName.has(word))
      if (code === 'wrong_state')
        expect([name, answer.text, namesNone]).toEqual([name, answer.text, withoutWayOut.has(name)])
    },
  )
})

describe.each(randomPart(operations).map((each) => [each.name, each] as const))(
  '%s, whatever it does,',
  (name, operation) => {
    const ready = async () => {
      const { meanwhile, ...found } = await setups[name]!(world)
      return found
    }

    test('is refused with the signature of another command, by its length and hash', async () => {
      const { signer, fields = {} } = await ready()
      const { proof, ...command } = { ...operation.example, ...fields } as Record<string, string>
      const other = JSON.parse(client.sign(signer, command as Fields).body) as { signature: string }
      const mine = JSON.parse(client.sign(signer, command as Fields).body) as object
      expectRefusal(await client.send(JSON.stringify({ ...mine, signature: other.signature })), 'bad_signature')
    })

    test('is refused when it was signed too long ago', async () => {
      const found = await ready()
      if (hasProof(operation)) return
      expectRefusal(await world.send(operation, { ...found, signing: { timestamp: now() - 400 } }), 'stale_timestamp')
    })

    test('is refused with an unknown field', async () => {
      const taken = new Set<string>([...operation.required, ...operation.optional])
      const strange = ['amount', 'handle', 'filename'].find((field) => !taken.has(field))!
      const value = strange === 'amount' ? 7 : 'x1'
      const { signer, fields } = await ready()
      expectRefusal(await world.send(operation, { signer, fields: { ...fields, [strange]: value } }), 'unknown_field')
    })

    test('is refused without what it needs', async () => {
      const { signer, fields = {} } = await ready()
      for (const required of operation.required) {
        const { proof, ...command } = { ...operation.example, ...fields, [required]: '' } as Record<string, string>
        expectRefusal(await client.command(signer, without(command, required)), 'missing_field')
      }
    })

    test('is refused without a signature, where one is required', async () => {
      if (isSigned(operation)) expectRefusal(await client.send(JSON.stringify(operation.example)), 'unsigned')
    })

    test('is done once for a nonce or a request_id, if it writes', async () => {
      if (operation.kind !== 'write' || hasProof(operation)) return
      const found = await ready()
      const nonce = newNonce()
      const request = newNonce()
      const first = await world.send(operation, {
        ...found,
        fields: { ...found.fields, request_id: request },
        signing: { nonce },
      })
      expect([first.status, first.text.slice(0, 12)]).toEqual([200, '{"ok":true,"'])
      const again = await world.send(operation, { ...found, fields: { ...found.fields, request_id: request } })
      expect([again.status, again.data.receipt?.duplicate]).toEqual([200, true])
      expect(again.data.receipt?.event_id).toBe(first.data.receipt?.event_id)
      const other = { ...found.fields, request_id: newNonce() }
      expectRefusal(await world.send(operation, { ...found, fields: other, signing: { nonce } }), 'nonce_reused')
    })
  },
)

/** A second key signs the same bytes: what is signed anew needs its own proof. */
const hasProof = ({ required }: Operation): boolean => required.includes('proof')

function without(command: Record<string, string>, name: string): Fields {
  return Object.fromEntries(Object.entries(command).filter(([key]) => key !== name)) as Fields
}

test('a refusal declared for a whole kind of operations is not declared again', () => {
  const again = (operation: Operation) =>
    operation.refusals.filter((code) => ['invalid_field', 'unknown_field'].includes(code))
  expect(operations.filter((each) => again(each).length > 0).map(({ name }) => name)).toEqual([])
})
