/**
 * A board on which everything possible was done is exported as a whole and imported into another directory: every line follows the schema,
 * the imported board exports the same lines again, and signed content proves what it proved.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { beforeAll, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { main } from '../../src/cli/main.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { HookTarget } from '../support/hook-target.ts'
import { setups, World } from '../support/operation-setups.ts'
import { patience } from '../support/patience.ts'
import { program } from '../support/program.ts'
import { randomPart } from '../support/random-part.ts'
import { type ProgramResult, runProgram } from '../support/run-program.ts'
import { workAt } from '../support/work-stages.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const operator = person('operator of an archive')
const source = boardDirectory()
const file = join(boardDirectory(), 'board.jsonl')
const env = { OPERATORS: operator.id, BROADSIDE_LOOPBACK: '1', BROADSIDE_LIMITS: 'off', SHARDS: '2' }
const target = join(boardDirectory(), 'board')

let lines: string[]
const secret = 'not for archives'
/** Events whose texts contain it: redacted, hidden, and one that expires. */
let voted: string
let withoutText: string[]
let schema: object

const broadside = (...args: string[]): Promise<ProgramResult> => broadsideAt('http://new.example', ...args)

const broadsideAt = (address: string, ...args: string[]): Promise<ProgramResult> =>
  runProgram(source, process.execPath, [program, ...args], { env: { BASE_URL: address } })

async function exported(client: Client): Promise<string[]> {
  const { text } = await client.get('/v1/export?stream=board')
  return text.trimEnd().split('\n')
}

/** The whole export, once nothing of it has changed for a while. */
async function atRest(client: Client): Promise<string[]> {
  let before = await exported(client)
  const isSame = async () => {
    await sleep(2_000)
    const last = before
    before = await exported(client)
    expect(ofRecords(before)).toEqual(ofRecords(last))
  }
  await vi.waitFor(isSame, patience)
  return before
}

/** The lines that are not about logs. */
function ofRecords(all: readonly string[]): string[] {
  return all.filter((line) => !/^\{"type":"(board|end)"/.test(line) && !line.includes('"op":"board.import"'))
}

beforeAll(async () => {
  const target = await HookTarget.open()
  let board = await startBoard({ directory: source, env })
  let client = await Client.of(board)
  const world = new World(client, operator)
  for (const operation of operations.filter(({ kind }) => kind !== 'read')) {
    const answer = await world.send(operation, await setups[operation.name]!(world))
    expect([operation.name, answer.status, answer.status === 200 ? '' : answer.text]).toEqual([operation.name, 200, ''])
  }
  for (const stage of ['claimed', 'submitted'] as const) await workAt(world, stage)
  withoutText = await hidePosts(client)
  voted = await votedThread(client)
  client.close()
  await board.stop()
  await target.close()
  // What a board still owes at a stop, such as a welcome grant, it does at its next start.
  board = await startBoard({ directory: source, env })
  client = await Client.of(board)
  lines = await atRest(client)
  writeFileSync(file, `${lines.join('\n')}\n`)
  schema = JSON.parse((await client.get('/export/board-1.schema.json')).text)
  client.close()
  await board.stop()
})

/** A thread with two votes for it and one against. */
async function votedThread(client: Client): Promise<string> {
  const { data } = await client.post(person('author of a liked text'), { room: 'archive', text: 'liked' })
  for (const [n, value] of [1, 1, -1].entries()) {
    const vote = { operation: 'vote', event_id: data.event_id!, data: JSON.stringify({ value }) }
    expect((await client.command(person(`voter ${n}`), vote)).status).toBe(200)
  }
  return data.event_id!
}

async function hidePosts(client: Client): Promise<string[]> {
  const author = person('author of hidden texts')
  const post = async (fields: object) => (await client.post(author, { room: 'archive', text: secret, ...fields })).data
  const { event_id: redacted } = await post({})
  const { event_id: hidden } = await post({})
  const { event_id: expiring } = await post({ ttl: 3_600 })
  await client.command(author, { operation: 'event.redact', event_id: redacted!, reason: 'mistaken' })
  await client.command(operator, { operation: 'room.hide', event_id: hidden!, reason: 'spam' })
  return [redacted!, hidden!, expiring!]
}

test('every line matches the published schema, and none contains a text that readers cannot see', () => {
  const check = new Ajv2020({ strict: true, strictTypes: false, allErrors: false }).compile(schema)
  const wrong = lines.filter((line) => !check(JSON.parse(line)))
  expect(wrong).toEqual([])
  expect(lines.filter((line) => line.includes(secret) && line.includes('signed_payload'))).toEqual([])
  const accepted = lines.filter((line) => line.includes('"op":"room.invite.accept"'))
  expect(accepted.map((line) => line.includes('signed_payload'))).toEqual(accepted.map(() => false))
  const types = new Set(lines.map((line) => JSON.parse(line).type))
  expect([...types].sort()).toEqual(['act', 'board', 'end', 'event', 'handle', 'room', 'votes'])
})

test('an import creates a board that exports the same lines, on either engine, and passes every check', async () => {
  const made = await broadside('import', file, '--as-it-was', '--data', target, '--keys', join(source, 'keys'))
  expect([made.code, made.errors]).toEqual([0, ''])
  expect(made.output).toContain('Every signature in the file was verified.')
  const fsck = await broadside('fsck', '--signatures', '--data', target)
  expect([fsck.code, fsck.output]).toEqual([0, expect.stringContaining('Everything agrees.')])
  for (const engine of ['uws', 'node']) {
    const board = await startBoard({ directory: target, env: { ...env, HTTP_ENGINE: engine } })
    const client = await Client.of(board)
    expect(ofRecords(await exported(client))).toEqual(ofRecords(lines))
    const { threads } = (await client.get('/api/threads?room=archive&order=top')).data as { threads?: object[] }
    expect(threads).toContainEqual(expect.objectContaining({ thread: voted, votes: { up: 2, down: 1, score: 1 } }))
    client.close()
    await board.stop()
  }
})

test('without the old keys the board signs anew, and earlier signatures are proved under their own service id', async () => {
  const other = join(boardDirectory(), 'anew')
  const { service_id: before, log } = JSON.parse(lines[0]!) as { service_id: string; log: { origin: string } }
  const made = await broadsideAt(`http://${log.origin.split('/')[0]}`, 'import', file, '--as-it-was', '--data', other)
  // At the address of the old board the log gets a different name than the old one.
  expect([made.code, made.errors, made.output]).toEqual([0, '', expect.stringMatching(/\/log\/\d{4}b/)])
  const board = await startBoard({ directory: other, env })
  const client = await Client.of(board)
  expect(client.serviceId).not.toBe(before)
  expect(ofRecords(await exported(client)).filter((line) => lines.includes(line))).toEqual(ofRecords(lines))
  expect((await client.post(person('a newcomer'), { room: 'archive', text: 'signed anew' })).status).toBe(200)
  const whole = join(other, '..', 'whole.jsonl')
  expect((await broadside('export', '--url', board.address, '--out', whole)).code).toBe(0)
  const key = (await client.get('/log/vkey')).text.trim()
  expect((await broadside('verify', whole, '--vkey', key)).code).toBe(3)
  const verified = await broadside('verify', whole, '--vkey', key, '--imported-from', before)
  expect([verified.code, verified.errors]).toEqual([0, ''])
  client.close()
  await board.stop()
})

test('works in progress wait for their workers, and threads continue', async () => {
  const board = await startBoard({ directory: target, env })
  const client = await Client.of(board)
  const { works } = (await client.get('/api/works?limit=100')).data as { works?: { state: string }[] }
  expect(works!.filter(({ state }) => state === 'claimed' || state === 'submitted')).toEqual([])
  expect(works!.filter(({ state }) => state === 'recovery_required')).not.toEqual([])
  const gone = async (id: string) => (await client.get(`/api/events/${id}`)).data.event
  const [redacted, hidden, expiring] = withoutText as [string, string, string]
  expect(await gone(redacted)).toMatchObject({ type: 'tombstone', reason: 'mistaken' })
  expect(await gone(hidden)).toMatchObject({ type: 'tombstone', reason: 'spam' })
  expect(await gone(expiring)).toMatchObject({ type: 'tombstone', reason: 'expired' })
  await client.command(operator, { operation: 'room.restore', event_id: hidden, reason: 'no spam' })
  expect(await gone(hidden)).toMatchObject({ type: 'tombstone', reason: 'expired' })
  const answer = await client.post(person('a newcomer'), { room: 'archive', text: 'here', reply_to: hidden })
  expect([answer.status, answer.text]).toEqual([200, expect.anything()])
  client.close()
  await board.stop()
})

test('an interrupted import does not start, and continues when it is run again', async () => {
  const directory = join(boardDirectory(), 'cut')
  const part = `${file}.part`
  writeFileSync(part, `${lines.slice(0, 200).join('\n')}\n`)
  const cut = await broadside('import', part, '--as-it-was', '--data', directory, '--keys', join(source, 'keys'))
  expect([cut.code, cut.errors]).toEqual([3, expect.stringContaining('Line 200 ')])
  expect(cut.errors).toContain('without a line of type end: it is truncated')
  const start = await broadside('serve', '--data', directory, '--port', '0')
  expect([start.code, start.errors]).toEqual([1, expect.stringContaining('import --as-it-was again')])
  const again = await broadside('import', file, '--as-it-was', '--data', directory, '--keys', join(source, 'keys'))
  expect([again.code, again.errors]).toEqual([0, ''])
  expect(again.output).toContain('An earlier run had written 199 lines of it.')
  const over = await broadside('import', file, '--as-it-was', '--data', directory)
  expect([over.code, over.errors]).toEqual([1, expect.stringContaining('an import overwrites nothing')])
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  expect(ofRecords(await exported(client))).toEqual(ofRecords(lines))
  client.close()
  await board.stop()
})

type Changed = (line: string, n: number) => string | undefined
const moved = (line: string): boolean => line.includes('"op":"identity.rotate"')
const thief = person('a thief').publicKey
/** It is the first line of an event, and begins a thread of its own. */
const firstEvent = (): string => JSON.parse(lines.find((line) => event(line))!).id
/** The entry of the first act with this name. */
const entryOf = (op: string): string => JSON.parse(lines.find((line) => line.includes(`"op":"${op}"`))!).entries[0]
const event = (line: string): boolean => line.includes('"type":"event"') && line.includes('signed_payload')

test.each<[name: string, change: Changed, rule: RegExp]>(
  randomPart([
    ['another version', (line) => line.replace('"version":1,', '"version":2,'), /^Line 1 .*reads version 1/],
    [
      'no first line',
      (line, n) => (n === 0 ? undefined : line),
      /^Line 1 .*must be of type board.*Nothing was written/,
    ],
    ['no JSON', (line, n) => (n === 4 ? line.slice(1) : line), /^Line 5 .*not one JSON object/],
    ['another type', (line, n) => (n === 4 ? '{"type":"posting"}' : line), /^Line 5 .*type must be one of/],
    ['an unknown field', (line) => (event(line) ? line.replace('{', '{"x":1,') : line), /additional properties \(x\)/],
    [
      'a field out of its bounds',
      (line) => (event(line) ? line.replace(/"seq":\d+/, '"seq":0') : line),
      /seq must be >= 1/,
    ],
    [
      'another text',
      (line) => (event(line) ? line.replaceAll(/(\\"text\\":\\")/g, '$1x') : line),
      /not the hash of signed\/signed_payload/,
    ],
    [
      'another signature',
      (line) =>
        event(line)
          ? line.replace(/"signature":"./, (found) => `${found.slice(0, -1)}${found.endsWith('A') ? 'B' : 'A'}`)
          : line,
      /signature does not verify/,
    ],
    [
      'another author',
      (line) => (event(line) ? line.replace(/"author":"[0-9a-f]/, '"author":"x').replace('"x', '"0') : line),
      /author|key/,
    ],
    [
      'a missing event',
      (line) => (event(line) && line.includes('"seq":1,') ? undefined : line),
      /seq is \d+|on no earlier line/,
    ],
    [
      'another size of the log',
      (line) => line.replace(/("type":"board".*"size":)\d+/, '$17'),
      /^Line 1 .*log\/checkpoint is of another origin, size or root than log/,
    ],
    [
      'a move to another key than the one that was signed',
      (line) => (moved(line) ? line.replace(/"to":"[^"]+"/, `"to":"${thief}"`) : line),
      /facts\/to is not the key that was signed/,
    ],
    [
      'a move that the new key did not sign',
      (line) => (moved(line) ? line.replace(/"proof":"[^"]+"/, `"proof":"${'A'.repeat(86)}"`) : line),
      /facts\/proof does not verify/,
    ],
    [
      'a move without its signed bytes',
      (line) => (moved(line) ? line.replace(/,"signature":"[^"]+","signed_payload":"(\\"|[^"])+"/, '') : line),
      /a move to another key is not signed by the identity itself/,
    ],
    [
      'another act than the one that was signed',
      (line) => line.replace('"op":"room.ban"', '"op":"room.unban"'),
      /op is room.unban, but the signed bytes are for room.ban/,
    ],
    [
      'another person concerned than the one that was signed',
      (line) =>
        line.includes('"op":"room.ban"')
          ? line.replace(/"facts":{"target":"..../, '$&x').replace(/....x/, '0123')
          : line,
      /facts\/target is not the one that was signed/,
    ],
    [
      'another hidden event than the one that was signed',
      (line) =>
        line.includes('"op":"room.hide"') ? line.replace(/{"hex":"[^"]+"}/, `{"hex":"${firstEvent()}"}`) : line,
      /facts\/id is not the event that was signed/,
    ],
    [
      'another kind than the one that was signed',
      (line) => (event(line) ? line.replace('"kind":"note"', '"kind":"promotion"') : line),
      /the kind shown is not the one that was signed/,
    ],
    [
      'a reply in another thread',
      (line) => (event(line) ? line.replace(/"reply":"[^"]+"/, `"reply":"${firstEvent()}"`) : line),
      /the reply_to shown is not the one that was signed/,
    ],
    [
      'an entry about another event than its redaction',
      (line) =>
        line.includes('"op":"event.redact"') ? line.replace(/(target )[0-9a-f]{32}/, `$1${firstEvent()}`) : line,
      /entries are not the entries of this act in the log/,
    ],
    [
      'an entry of more credits than its posting',
      (line) => (line.includes('"op":"credit.grant"') ? line.replace(/(amount )(\d+)/, '$19$2') : line),
      /entries are not the entries of this act in the log/,
    ],
    [
      'an entry of an act that has none',
      (line) =>
        line.includes('"op":"tools.publish"')
          ? line.replace('"signed":', `"entries":[${JSON.stringify(entryOf('event.redact'))}],"signed":`)
          : line,
      /entries are not the entries of this act in the log/,
    ],
    ['a missing end', (line) => (line.includes('"type":"end"') ? undefined : line), /without a line of type end/],
    ['more lines', (line) => (line.includes('"type":"end"') ? line.replace(/\d+/, '7') : line), /lines is 7/],
  ]),
)('a file with %s is refused, with the line and the rule', async (_name, change, rule) => {
  const wrong = `${file}.wrong`
  writeFileSync(wrong, `${lines.flatMap((line, n) => change(line, n) ?? []).join('\n')}\n`)
  const terminal = capturedTerminal()
  const code = await main(['import', wrong, '--as-it-was', '--data', join(boardDirectory(), 'wrong')], terminal)
  expect([code, terminal.said.err.replace(/^[^L]*/, '')]).toEqual([3, expect.stringMatching(rule)])
})
