/**
 * A board on which everything was done that can be done goes through its whole-board export into another directory: every line is as the
 * schema says, the imported board exports the same lines again, and what was signed proves what it proved.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { HookTarget } from '../support/hook-target.ts'
import { setups, World } from '../support/operation-setups.ts'
import { program } from '../support/program.ts'
import { type Ended, runProgram } from '../support/run-program.ts'
import { workAt } from '../support/work-stages.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const operator = person('operator of an archive')
const source = boardDirectory()
const file = join(boardDirectory(), 'board.jsonl')
const env = { OPERATORS: operator.id, BROADSIDE_LOOPBACK: '1', SHARDS: '2' }
const target = join(boardDirectory(), 'board')

let lines: string[]
let secret: string
let schema: object

const broadside = (...args: string[]): Promise<Ended> =>
  runProgram(source, process.execPath, [program, ...args], { env: { BASE_URL: 'http://new.example' } })

async function exported(client: Client): Promise<string[]> {
  const { text } = await client.get('/v1/export?stream=board')
  return text.trimEnd().split('\n')
}

/** Lines but for those that tell of logs. */
function ofRecords(all: readonly string[]): string[] {
  return all.filter((line) => !/^\{"type":"(board|end)"/.test(line) && !line.includes('"op":"board.import"'))
}

beforeAll(async () => {
  const board = await startBoard({ directory: source, env })
  const target = await HookTarget.open()
  const client = await Client.of(board)
  const world = new World(client, operator)
  for (const operation of operations.filter(({ kind }) => kind !== 'read')) {
    const answer = await world.send(operation, await setups[operation.name]!(world))
    expect([operation.name, answer.status, answer.status === 200 ? '' : answer.text]).toEqual([operation.name, 200, ''])
  }
  for (const stage of ['claimed', 'submitted'] as const) await workAt(world, stage)
  secret = await hidePosts(client)
  lines = await exported(client)
  writeFileSync(file, `${lines.join('\n')}\n`)
  schema = JSON.parse((await client.get('/export/board-1.schema.json')).text)
  client.close()
  await board.stop()
  await target.close()
})

/** Texts that no reader is shown, all of which contain what is returned. */
async function hidePosts(client: Client): Promise<string> {
  const mark = 'not for archives'
  const author = person('author of hidden texts')
  const post = async (fields: object) => (await client.post(author, { room: 'archive', text: mark, ...fields })).data
  const { event_id: redacted } = await post({})
  const { event_id: hidden } = await post({})
  await post({ ttl: 3_600 })
  await client.command(author, { operation: 'event.redact', event_id: redacted!, reason: 'mistaken' })
  await client.command(operator, { operation: 'room.hide', event_id: hidden!, reason: 'spam' })
  return mark
}

test('every line is as the published schema says, and no text that readers do not see is in any', () => {
  const check = new Ajv2020({ strict: true, strictTypes: false, allErrors: false }).compile(schema)
  const wrong = lines.filter((line) => !check(JSON.parse(line)))
  expect(wrong).toEqual([])
  expect(lines.filter((line) => line.includes(secret) && line.includes('signed_payload'))).toEqual([])
  const types = new Set(lines.map((line) => JSON.parse(line).type))
  expect([...types].sort()).toEqual(['act', 'board', 'end', 'event', 'handle', 'room', 'votes'])
})

test('an import gives a board that exports the same lines, on either engine, and passes every check', async () => {
  const made = await broadside('import', file, '--as-it-was', '--data', target, '--keys', join(source, 'keys'))
  expect([made.code, made.errors]).toEqual([0, ''])
  expect(made.output).toContain('Every signature in the file was verified.')
  const fsck = await broadside('fsck', '--signatures', '--data', target)
  expect([fsck.code, fsck.output]).toEqual([0, expect.stringContaining('Everything agrees.')])
  for (const engine of ['uws', 'node']) {
    const board = await startBoard({ directory: target, env: { ...env, HTTP_ENGINE: engine } })
    const client = await Client.of(board)
    expect(ofRecords(await exported(client))).toEqual(ofRecords(lines))
    client.close()
    await board.stop()
  }
})
