/**
 * What an identity may request from a host: a copy of everything that the board has about it, and its erasure. On a real board, with the
 * real program.
 */
import { createHash } from 'node:crypto'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { filesUnder } from '../support/files-under.ts'
import { patience } from '../support/patience.ts'
import { keyFileOf } from '../support/payer-board.ts'
import { program } from '../support/program.ts'
import { type ProgramResult, runProgram } from '../support/run-program.ts'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const [eve, ada, operator] = [person('eve who leaves'), person('ada'), person('operator')]
const directory = boardDirectory()
const secretWords = ['said in public', 'said in private', 'said to ada', 'about eve herself']
const file = Buffer.from('a picture of eve')
let board: Board
let client: Client
let delegateKey: Signer
/** The key of a delegate that never wrote anything. */
const silentKey = person('silent agent of eve')

async function start(): Promise<void> {
  board = await startBoard({ directory, env: { SHARDS: '2', OPERATORS: operator.id, COMPACT_SECONDS: '1' } })
  client = await Client.of(board)
}

async function done(who: Signer, fields: Fields) {
  const answer = await client.command(who, fields)
  expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
  return answer.data as typeof answer.data & {
    blob?: { id: string }
    document?: { id: string }
    conversation?: { room: string }
  }
}

const events: string[] = []
let document: string
let blob: string

beforeAll(async () => {
  await start()
  delegateKey = person('agent of eve')
  await done(eve, { operation: 'identity.register', handle: 'eve-leaves' })
  await done(eve, {
    operation: 'identity.profile.set',
    data: '{"schema":1,"description":"about eve herself","capabilities":["lamplighting"]}',
  })
  await done(ada, { operation: 'room.create', room: 'closed', visibility: 'private' })
  await done(ada, { operation: 'room.member.add', room: 'closed', target: eve.id })
  blob = (await done(eve, { operation: 'blob.put', room: 'closed', data: file.toString('base64url') })).blob!.id
  events.push((await done(eve, { operation: 'post', room: 'lobby', text: 'said in public' })).event_id!)
  events.push(
    (await done(eve, { operation: 'post', room: 'closed', text: 'said in private', attachments: [blob] })).event_id!,
  )
  const other = (await done(ada, { operation: 'post', room: 'lobby', text: 'by ada, who stays' })).event_id!
  await done(eve, { operation: 'vote', event_id: other, data: '{"schema":1,"value":1}' })
  const conversation = await done(eve, {
    operation: 'conversation.open',
    members: [ada.id] as never,
    text: 'said to ada',
  })
  expect(conversation).toBeTruthy()
  document = String(
    (
      (await done(eve, {
        operation: 'docs.create',
        room: 'lobby',
        text: 'a document of eve',
        data: '{"schema":1,"title":"Plan"}',
      })) as unknown as { doc: { id: string } }
    ).doc.id,
  )
  await createDelegation(client, eve, delegateKey)
  await createDelegation(client, eve, silentKey)
})

const broadside = (...args: string[]): Promise<ProgramResult> =>
  runProgram(scratchDirectory(), process.execPath, [program, 'identity', ...args, '--data', directory, '--json'])
const erase = (...more: string[]) =>
  broadside('erase', eve.id, '--url', board.address, '--key', keyFileOf(operator), ...more)
const json = ({ output }: ProgramResult): Record<string, unknown> => JSON.parse(output) as Record<string, unknown>
const onDisk = (words: string | Buffer) =>
  [...filesUnder(directory)].filter(([, bytes]) => bytes.includes(words)).map(([name]) => name)

/** The agents that the directory lists for what eve says she can do. */
const agents = async () => {
  const { data } = await client.get('/api/tools?query=lamplighting')
  return (data as { results?: { id: string }[] }).results?.map(({ id }) => id)
}

test('the copy has what it did and what was done about it, in private rooms too, with its files', async () => {
  const to = join(scratchDirectory(), 'copy')
  const found = await broadside('export', eve.id, to)
  expect([found.code, found.errors]).toEqual([0, ''])
  const lines = readFileSync(join(to, 'identity.jsonl'), 'utf8').trimEnd().split('\n')
  const records = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(records[0]).toMatchObject({ type: 'identity', id: eve.id, service_id: client.serviceId })
  const text = lines.join('\n')
  for (const words of [...secretWords, 'eve-leaves', 'a document of eve'])
    expect([words, text.includes(words)]).toEqual([words, true])
  expect(text).not.toContain('by ada, who stays')
  const ops = records.map(({ type, op, relation }) => [relation, op ?? type].join(' '))
  for (const op of [
    'by event',
    'by vote',
    'by handleClaimed',
    'by identity.profile.set',
    'by blob.put',
    'by docs.create',
    'by delegation.create',
    'about room.member.add',
  ])
    expect(ops).toContain(op)
  const kept = records.find(({ id }) => id === events[1])!
  expect(createHash('sha256').update(String(kept.signed_payload)).digest('hex').slice(0, 32)).toBe(events[1])
  const [name] = readdirSync(join(to, 'attachments'))
  expect(readFileSync(join(to, 'attachments', name!))).toEqual(file)
  const uploaded = records.find(({ op }) => op === 'blob.put') as Record<string, string> & { cut_at: number }
  const [start, end] = [
    uploaded.signed_payload!.slice(0, uploaded.cut_at),
    uploaded.signed_payload!.slice(uploaded.cut_at),
  ]
  const signed = Buffer.from(`${start}${file.toString('base64url')}${end}`)
  expect(createHash('sha256').update(signed).digest('hex').slice(0, 32)).toBe(uploaded.id)
  expect(await broadside('export', eve.id, to)).toMatchObject({ code: 1 })
})

test('before the erasure the directory lists it', async () => {
  await expect.poll(agents).toEqual([`agent:${eve.id}`])
})

test('a dry run says what would be removed, and changes nothing', async () => {
  const found = await erase('--dry-run')
  expect(json(found)).toMatchObject({ dry_run: true, files: 1, documents: 1, erased: false })
  expect((await client.post(eve, { room: 'lobby', text: 'still here' })).status).toBe(200)
})

test('only an operator can erase, and nobody else’s attempt changes anything', async () => {
  const found = await broadside('erase', eve.id, '--url', board.address, '--key', keyFileOf(ada))
  expect([found.code, found.errors]).toEqual([1, expect.stringContaining('forbidden')])
  expect((await client.get(`/api/events/${events[0]}`)).text).toContain('said in public')
})

test('after the erasure its texts, files, documents, profile and handle are gone from every read, and from the disk', async () => {
  const found = await erase()
  expect([found.code, found.errors]).toEqual([0, ''])
  expect(json(found)).toMatchObject({ identity: eve.id, refused: 0 })
  const { data } = await client.get(`/api/identities/${eve.id}`)
  expect(data.identity).toMatchObject({ id: eve.id, erased: true })
  expect(data.identity).not.toHaveProperty('handle')
  expect(data.identity).not.toHaveProperty('profile')
  expect(await client.get('/api/identities/eve-leaves')).toMatchObject({ code: 'not_found' })
  const inRoom = await client.command(ada, { operation: 'events.list', room: 'closed' })
  expect(inRoom.text).not.toContain('said in private')
  expect(await client.command(ada, { operation: 'blob.get', target: blob })).toMatchObject({ code: 'not_found' })
  expect(await client.command(ada, { operation: 'docs.read', target: document })).toMatchObject({ code: 'not_found' })
  expect((await client.get('/v1/export')).text).not.toMatch(/said in public|eve-leaves/)
  expect(await agents()).toEqual([])
  for (const words of secretWords) await vi.waitFor(() => expect([words, onDisk(words)]).toEqual([words, []]), patience)
  expect(onDisk(file)).toEqual([])
})

test('it and its delegate are refused, and nobody can take its handle', async () => {
  for (const who of [eve, delegateKey])
    expect((await client.post(who, { room: 'lobby', text: 'back' })).status).not.toBe(200)
  expect(await client.command(ada, { operation: 'identity.register', handle: 'eve-leaves' })).toMatchObject({
    code: 'name_taken',
  })
  expect(await client.command(operator, { operation: 'identity.unsuspend', target: eve.id })).toMatchObject({
    code: 'wrong_state',
  })
})

test('repeating the erasure does nothing; what a kill left is done by the next run', async () => {
  expect(json(await erase())).toMatchObject({ done: 0, refused: 0 })
  const frank = person('frank who leaves too')
  for (let n = 0; n < 200; n++) await client.post(frank, { room: 'lobby', text: `of frank ${n}` })
  await done(operator, { operation: 'identity.erase', target: frank.id, reason: 'as asked' })
  client.close()
  await board.kill()
  await start()
  const ran = await broadside('erase', frank.id, '--url', board.address, '--key', keyFileOf(operator))
  expect(json(ran)).toMatchObject({ done: 200, refused: 0 })
  expect((await client.get('/v1/export')).text).not.toContain('of frank')
})

const eraseScopes = ['board:post', 'board:moderate', 'board:operate']
/** The identity that the next two tests are about: it wrote posts in public and in a private room, and a private document. */
const grace = person('grace who leaves last')
let privatePlan: string
/** Erases grace with a key of the operator's that has these scopes, at the port that a settings file names. */
async function eraseWith(scopes: readonly string[]): Promise<ProgramResult> {
  const key = person(`delegate with ${scopes.join(' ')}`)
  await createDelegation(client, operator, key, { scopes })
  const settings = join(scratchDirectory(), 'settings.json')
  writeFileSync(settings, JSON.stringify({ PORT: board.port }))
  return broadside('erase', grace.id, '--config', settings, '--key', keyFileOf(key))
}

test('a delegated key that lacks a scope erases nothing, and the answer names the scopes', async () => {
  await done(ada, { operation: 'room.member.add', room: 'closed', target: grace.id })
  for (const room of ['lobby', 'closed']) await done(grace, { operation: 'post', room, text: 'of grace' })
  const plan = { operation: 'docs.create', room: 'closed', text: 'a plan', data: '{"schema":1,"title":"Private plan"}' }
  privatePlan = ((await done(grace, plan)) as unknown as { doc: { id: string } }).doc.id
  for (const lacking of eraseScopes) {
    const { code, output, errors } = await eraseWith(eraseScopes.filter((scope) => scope !== lacking))
    expect([lacking, code, output, errors]).toEqual([
      lacking,
      1,
      '',
      expect.stringContaining(`needs the scope ${lacking}`),
    ])
    if (lacking !== 'board:operate')
      expect(errors).toContain(`Nothing was erased. Sign with an operator's own key, or with one that has every scope`)
  }
  expect((await client.post(grace, { room: 'lobby', text: 'still here, of grace' })).status).toBe(200)
})

test('a delegated key with the scopes that HOSTING names erases everything, at the port that the settings name', async () => {
  const found = await eraseWith(eraseScopes)
  expect([found.errors, json(found)]).toMatchObject(['', { done: 5, refused: 0, complete: true }])
  expect(await client.command(ada, { operation: 'docs.read', target: privatePlan })).toMatchObject({
    code: 'not_found',
  })
  await vi.waitFor(() => expect(onDisk('of grace')).toEqual([]), patience)
})

test('an erasure at the address of another board is refused before anything is signed for it', async () => {
  const other = await startBoard({ directory: boardDirectory(), env: { OPERATORS: operator.id } })
  const found = await broadside('erase', eve.id, '--url', other.address, '--key', keyFileOf(operator))
  expect([found.code, found.errors]).toEqual([1, expect.stringContaining('Name the address of that board with --url')])
  await other.stop()
})

test('everything is proved, survives a restart without snapshots, and is in the moderation log', async () => {
  const vkey = (await client.get('/log/vkey')).text.trim()
  const folder = scratchDirectory()
  const run = (...args: string[]) => runProgram(folder, process.execPath, [program, ...args])
  expect(await run('export', '--url', board.address, '--out', 'board.jsonl')).toMatchObject({ code: 0 })
  expect(await run('verify', 'board.jsonl', '--vkey', vkey)).toMatchObject({ code: 0 })
  expect((await client.get('/moderation')).text).toContain('event.redact')
  client.close()
  await board.stop()
  expect(await run('fsck', '--data', directory)).toMatchObject({ code: 0 })
  await start()
  expect((await client.get(`/api/identities/${eve.id}`)).data.identity).toMatchObject({ erased: true })
  for (const key of [delegateKey, silentKey])
    expect(await client.command(key, { operation: 'events.list', room: 'closed' })).toMatchObject({ code: 'forbidden' })
  expect(await agents()).toEqual([])
  expect(await client.command(ada, { operation: 'identity.register', handle: 'eve-leaves' })).toMatchObject({
    code: 'name_taken',
  })
})

test('an erasure of which an act is refused says that it is not complete, and how to complete it', async () => {
  const heidi = person('heidi')
  client.close()
  await board.stop()
  // The board goes back to a copy from before the post, so that it refuses to redact what the directory contains.
  const older = join(scratchDirectory(), 'older')
  cpSync(directory, older, { recursive: true })
  await start()
  await done(heidi, { operation: 'post', room: 'lobby', text: 'of heidi' })
  client.close()
  await board.stop()
  const again = await startBoard({ directory: older, env: { SHARDS: '2', OPERATORS: operator.id } })
  const by = ['--url', again.address, '--key', keyFileOf(operator)]
  const found = await broadside('erase', heidi.id, ...by)
  expect([found.code, json(found)]).toMatchObject([1, { done: 1, refused: 1, complete: false }])
  expect(found.errors).toContain('event.redact: The board refused: there is nothing with the id')
  const text = await runProgram(scratchDirectory(), process.execPath, [
    ...[program, 'identity', 'erase', heidi.id, '--data', directory],
    ...by,
  ])
  expect([text.code, text.output]).toEqual([1, expect.stringContaining(`${heidi.id} is NOT completely erased`)])
  expect(text.output).toContain('run the same command again')
  expect(text.output).not.toContain('What stays')
  await again.stop()
})
