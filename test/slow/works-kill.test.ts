/**
 * Works over kills: the board dies at its nth sync, or at a random moment, during the life of a work. Whatever was in progress is finished
 * by the next start: there is never a hold without a post, nor a post of a refused work.create, and everything is announced once.
 *
 * BROADSIDE_WORK_KILLS: rounds for each of the journals (default 3).
 */
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import { LedgerBooks, readLedgerLine } from '../../src/export-check/ledger-books.ts'
import { missingProgram } from '../peers/peers.ts'
import { Board, boardDirectory, startBoard, tryStartBoard } from '../support/board-process.ts'
import { Client, type Fields, newNonce, person, type SignedCommand } from '../support/client.ts'
import { findDamage } from '../support/find-damage.ts'
import { randomFrom } from '../support/load.ts'
import { randomPart } from '../support/random-part.ts'
import { WorkClient, type WorkJson } from '../support/work-client.ts'

vi.setConfig({ testTimeout: 900_000 })

const rounds = Number(process.env.BROADSIDE_WORK_KILLS ?? 3)
const op = person('operator')
const [ada, bob] = [person('ada'), person('bob')]
const market = shardOf(marketName, 2)
/** Rooms of the other shard of two, so that none of their records are in the market's journal. */
const roomName = Array.from({ length: 20 }, (_, n) => `hall-${n}`).find((name) => shardOf(name, 2) !== market)!
const closedRoom = Array.from({ length: 20 }, (_, n) => `shut-${n}`).find((name) => shardOf(name, 2) !== market)!

/** Approximate number of syncs in a life. */
const journals = randomPart([
  ['market', `shard-0${market}`, 2, 12],
  ['room', `shard-0${1 - market}`, 2, 10],
  ['log', 'log', 2, 12],
  ['only shard', 'shard-00', 1, 8],
  ['log of one shard', 'log', 1, 7],
] as const)

type Life = {
  readonly work: string
  readonly refused: string
  readonly newcomer: ReturnType<typeof person>
  /** In the order they are sent; each has to succeed eventually, except the refused one. */
  readonly commands: readonly SignedCommand[]
}

/** Signed before anything is sent, so that after a kill the same bytes are sent again. */
function lifeOf(client: Client, name: string): Life {
  const newcomer = person(`newcomer ${name}`)
  const sign = (who: typeof ada, fields: Fields) => client.sign(who, fields, { nonce: newNonce() })
  const ask = (room: string): Fields => ({
    operation: 'work.create',
    room,
    text: `life ${name}`,
    amount: 30,
    data: '{"schema":1,"title":"a life"}',
  })
  const refused = sign(bob, ask(closedRoom))
  const created = sign(ada, ask(roomName))
  const work = created.eventId
  const edited = sign(ada, { operation: 'work.edit', event_id: work, text: `life ${name}, again` })
  const claimed = sign(bob, { operation: 'work.claim', event_id: work, data: '{"schema":1}' })
  const result = sign(bob, { operation: 'post', text: `result ${name}`, reply_to: work, kind: 'result' })
  const submitted = sign(bob, {
    operation: 'work.submit',
    event_id: work,
    target: result.eventId,
    amount: 1,
    data: '{"schema":1}',
  })
  const hello = sign(newcomer, { operation: 'post', room: roomName, text: `hello ${name}` })
  const accepted = sign(ada, { operation: 'work.accept', event_id: work, data: '{"schema":1}' })
  const commands = [refused, created, edited, claimed, result, submitted, hello, accepted]
  return { work, refused: refused.eventId, newcomer, commands }
}

/** Sends everything not yet answered; returns false if the board died. */
async function live(client: Client, { commands, refused }: Life, from: number): Promise<number> {
  for (let n = from; n < commands.length; n++) {
    const command = commands[n]!
    const answer = await client.send(command.body).catch(() => undefined)
    if (answer === undefined) return n
    const wanted = command.eventId === refused ? 'room_write_restricted' : undefined
    expect([n, answer.code, answer.code === wanted ? '' : answer.text]).toEqual([n, wanted, ''])
  }
  return commands.length
}

/** What a start has made of a life that was cut off, before any other request. */
async function whole(client: Client, { work, refused }: Life, heldBefore: number): Promise<void> {
  const [event, record] = await Promise.all([client.get(`/api/events/${work}`), client.get(`/api/work/${work}`)])
  expect([event.status, record.status]).toEqual([record.status, event.status])
  const found = (record.data as unknown as { work?: WorkJson }).work
  const holds = found !== undefined && found.reward.state === 'held' ? found.reward.amount + found.reward.fee : 0
  expect((await new WorkClient(client).balance(ada)).held - heldBefore).toBe(holds)
  expect((await client.get(`/api/events/${refused}`)).code).toBe('not_found')
  expect((await new WorkClient(client).balance(bob)).held).toBe(0)
}

/** Everything of a finished life, announced once and paid once. */
async function finished(client: Client, { work, newcomer }: Life): Promise<void> {
  const works = new WorkClient(client)
  const record = (await client.get(`/api/work/${work}`)).data as unknown as { work: WorkJson }
  expect(record.work).toMatchObject({
    state: 'accepted',
    fence: 1,
    request: { versions: 2 },
    reward: { state: 'paid' },
  })
  const heads = async () => (await works.notices(ada, work)).map(({ text }) => text.split(' ')[0])
  await expect.poll(heads).toEqual(['Open:', 'The', 'Claimed', 'A', 'Accepted:'])
  const { data } = await client.get(`/api/thread/${work}?limit=200`)
  expect(data.events!.map(({ kind }) => kind).filter((kind) => kind !== 'notice')).toEqual(['request', 'result'])
  const history = (await client.get(`/api/work/${work}/history`)).data as unknown as {
    transitions: { state: string }[]
  }
  expect(history.transitions.map(({ state }) => state)).toEqual(['open', 'open', 'claimed', 'submitted', 'accepted'])
  await expect.poll(async () => (await works.balance(newcomer)).available).toBe(100)
  const ledger = (await client.get('/v1/export?stream=ledger')).text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ type }) => type === 'ledger')
  const books = new LedgerBooks()
  for (const line of ledger) {
    const read = readLedgerLine(line)
    expect(typeof read === 'string' ? read : books.take(read.line)).toBeUndefined()
  }
  expect(books.end()).toBeUndefined()
  expect(ledger.filter(({ event, posting }) => event === work && posting === 'hold')).toHaveLength(1)
  expect(ledger.filter(({ credit, code }) => credit === `user:${newcomer.id}` && code === 2)).toHaveLength(1)
}

/** Starts a board that dies at the nth sync of a journal, possibly during its start; without strace, at a random moment. */
async function doomed(
  { directory, env }: { directory: string; env: Readonly<Record<string, string>> },
  part: string,
  nth: number,
  afterMs: number,
): Promise<Board | undefined> {
  if (missingProgram('strace') !== undefined) {
    const board = await startBoard({ directory, env })
    setTimeout(() => board.signal('SIGKILL'), afterMs)
    return board
  }
  const file = join(directory, part, '00000000000000000001.log')
  const trace = ['-P', file, '-e', 'trace=fdatasync', '-e', `inject=fdatasync:signal=KILL:when=${nth}`]
  const found = await tryStartBoard({ directory, env, under: ['strace', '-f', '-qq', '-o', '/dev/null', ...trace] })
  if (found instanceof Board) return found
  expect(found.signal, found.output).toBe('SIGKILL')
  return undefined
}

async function begin(board: Board): Promise<{ client: Client; held: number }> {
  const client = await Client.of(board)
  return { client, held: (await new WorkClient(client).balance(ada)).held }
}

test.each(journals)('kills at the syncs of the %s journal: work in progress is finished once', async (...row) => {
  const [name, part, shards, syncs] = row
  const env = { SHARDS: String(shards), OPERATORS: op.id }
  const directory = boardDirectory()
  const first = await startBoard({ directory, env })
  const setup = await Client.of(first)
  const works = new WorkClient(setup)
  for (const room of [roomName, closedRoom])
    expect((await setup.command(ada, { operation: 'room.create', room })).status).toBe(200)
  const shut = { operation: 'room.policy.set', room: closedRoom, data: '{"write":"owner"}' }
  expect((await setup.command(ada, shut)).status).toBe(200)
  await Promise.all([works.waitForWelcome(ada, roomName), works.waitForWelcome(bob, roomName)])
  expect((await setup.command(op, { operation: 'credit.grant', target: ada.id, amount: 100_000 })).status).toBe(200)
  expect((await setup.command(op, { operation: 'credit.grant', target: bob.id, amount: 1_000 })).status).toBe(200)
  setup.close()
  await first.stop()
  const random = randomFrom(7)
  let killed = 0
  for (let round = 0; round < rounds; round++) {
    // After one in the start.
    const nth = 2 + Math.floor((round * syncs) / rounds)
    const board = await doomed({ directory, env }, part, nth, random(600))
    const begun = board && (await begin(board).catch(() => undefined))
    if (board === undefined || begun === undefined) {
      killed++
      await board?.kill()
      continue
    }
    const { client, held } = begun
    const life = lifeOf(client, `${name} ${round}`)
    const reached = await live(client, life, 0).catch((error: Error) => {
      throw new Error(`round ${round}, sync ${nth}: ${error.message}`)
    })
    client.close()
    if (reached < life.commands.length) killed++
    await board.kill()
    const back = await startBoard({ directory, env })
    const again = await Client.of(back)
    await whole(again, life, held)
    // The same bytes again, from the one that had no answer on.
    expect(await live(again, life, reached)).toBe(life.commands.length)
    await finished(again, life)
    again.close()
    await back.stop()
  }
  expect(killed).toBeGreaterThan(0)
  expect(findDamage(directory)).toEqual([])
})
