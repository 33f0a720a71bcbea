/** Leaders that are queried over HTTP, and do not answer as they should. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { askOverHttp, Leader, OutOfReach, RefusedFollower } from '../../../src/replication/leader.ts'
import { goneStatus } from '../../../src/replication/leader-answers.ts'

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function leader(...boxes: RequestListener[]): Promise<Leader> {
  const addresses: string[] = []
  for (const answer of boxes) {
    const server = createServer(answer).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    addresses.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  }
  return new Leader(addresses, '7'.repeat(64), askOverHttp(systemClock))
}

const room = 'lobby'
const sha256 = '0'.repeat(64)

test('a box that begins no answer is unreachable, long before a slow answer would have to end', {
  timeout: 30_000,
}, async () => {
  const silent = await leader(() => {})
  const slow = await leader(async (_request, response) => {
    response.writeHead(200)
    for (const byte of 'slow')
      await pause(1_500).then(() => {
        response.write(byte)
      })
    response.end()
  })
  const asked = [silent.frames([]), silent.blob(room, sha256), slow.blob(room, sha256)]
  const [frames, blob, bytes] = await Promise.allSettled(asked)
  for (const each of [frames, blob]) expect(each).toMatchObject({ status: 'rejected', reason: expect.any(OutOfReach) })
  expect(bytes).toEqual({ status: 'fulfilled', value: Buffer.from('slow') })
})

const facts = {
  facts: { service_id: 'board.example', generation: 'g', shards: 1 },
  identity: { id: 'i', publicKey: 'p' },
  log: { origin: 'o', vkey: 'v' },
  logs: [],
  readKey: '0'.repeat(64),
}
const ends = { epoch: 2, log: 1, shards: [1], durable: { log: 1, shards: [1] } }

/** A box that leads, has no frames to send now, and cannot read an attachment. */
const leads: RequestListener = (request, response) => {
  const path = request.url!.replace('/replica/', '')
  const known: Readonly<Record<string, object>> = { board: facts, ends, command: { status: 200, body: '{}', ends } }
  response.statusCode = path === 'frames' ? 503 : path.startsWith('blob') ? 500 : 200
  response.end(JSON.stringify(known[path] ?? {}))
}

const answers =
  (status: number, body: string): RequestListener =>
  (_request, response) => {
    response.statusCode = status
    response.end(body)
  }

const questions: Readonly<Record<string, (asked: Leader) => Promise<unknown>>> = {
  board: (asked) => asked.facts(),
  ends: (asked) => asked.ends(),
  frames: (asked) => asked.frames([]),
  blob: (asked) => asked.blob(room, sha256),
  command: (asked) => asked.command({ command: '{}', via: 'http', address: '192.0.2.1' }),
}

for (const [name, ask] of Object.entries(questions))
  test(`if a proxy answers for a dead box, the next address is tried: ${name}`, async () => {
    for (const status of [200, 403, 409, 500, 502, 503, 504]) {
      // The bytes of an attachment and the answer to a command are not examined.
      if (status === 200 && (name === 'blob' || name === 'command')) continue
      const asked = await leader(answers(status, '<h1>Bad Gateway</h1>'), leads)
      const { address: gone } = asked
      const found = ask(asked)
      if (name === 'board') await expect(found).resolves.toEqual(facts)
      else if (name === 'command') await expect(found).resolves.toBe(undefined)
      else await expect(found).rejects.toThrow(OutOfReach)
      expect(asked.address, `after ${status}`).not.toBe(gone)
      expect(await asked.facts()).toEqual(facts)
    }
  })

const refusalOf = (code: string) => JSON.stringify({ ok: false, error: { code, message: `it is ${code}` } })

test('a board that refuses the key of a follower says so to every question, and has carried out nothing', async () => {
  for (const [status, code] of [
    [403, 'forbidden'],
    [429, 'rate_limited'],
  ] as const)
    for (const ask of Object.values(questions)) {
      const asked = await leader(answers(status, refusalOf(code)))
      const { address } = asked
      const error = await ask(asked).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(RefusedFollower)
      expect(error).toMatchObject({ undoneBy: address, message: expect.stringContaining('the same REPLICA_KEY_FILE') })
    }
})

test('a board that does not lead refuses a follower for good only if it is the only address', async () => {
  const follows = answers(404, refusalOf('not_found'))
  const messages = new Set<string>()
  for (const ask of Object.values(questions)) {
    const one = await leader(follows)
    expect(await ask(one).catch((reason: unknown) => reason)).toBeInstanceOf(RefusedFollower)
    const several = await leader(follows, follows)
    const error = await ask(several).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(OutOfReach)
    expect(error).not.toBeInstanceOf(RefusedFollower)
    expect(error).toMatchObject({ undoneBy: expect.stringContaining('http://') })
    messages.add((error as Error).message.replace(/^\S+ /, ''))
  }
  expect([...messages]).toEqual(['does not lead now, or has no REPLICA_KEY_FILE'])
})

test('another refusal of the board itself is passed on to the client, and the outcome of an internal error is unknown', async () => {
  const ask = async (status: number, code: string) => questions.command!(await leader(answers(status, refusalOf(code))))
  const body = refusalOf('too_large')
  expect(await ask(400, 'too_large')).toEqual({ reply: { status: 400, body }, ends: undefined })
  expect(await ask(500, 'internal')).toBe(undefined)
})

test('with a single address that one is tried again', async () => {
  const asked = await leader(answers(502, ''))
  const { address } = asked
  for (const ask of Object.values(questions)) await ask(asked).catch(() => {})
  expect(asked.address).toBe(address)
})

test('a leader without new frames, or without a readable attachment, is not abandoned', async () => {
  const asked = await leader(leads, answers(502, ''))
  const { address } = asked
  await expect(asked.frames([])).rejects.toThrow(OutOfReach)
  await expect(asked.blob(room, sha256)).rejects.toThrow(OutOfReach)
  expect(asked.address).toBe(address)
  const without = await leader(answers(goneStatus, '{}'), answers(502, ''))
  const { address: same } = without
  await expect(without.blob(room, sha256)).resolves.toBe(undefined)
  expect(without.address).toBe(same)
})
