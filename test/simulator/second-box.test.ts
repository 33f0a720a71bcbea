/** A follower in situations that are rare on real machines: the simulator finds them by chance, and these tests directly. */
import { createHash } from 'node:crypto'
import { afterAll, afterEach, expect, test } from 'vitest'
import { envelopeOf, type Reply } from '../../src/format/reply.ts'
import { setLogLevel } from '../../src/observe.ts'
import { type Ack, dataDirectory } from './board.ts'
import { checkFiles } from './checks.ts'
import { Signatures, signed, signerOf } from './people.ts'
import type { SecondBox } from './second-box.ts'
import { World } from './world.ts'

setLogLevel('silent')
afterAll(() => setLogLevel('info'))

const endless = Number.POSITIVE_INFINITY
const off: ReadonlySet<string> = new Set()
let world: World

afterEach(async () => {
  await world.sim.kill()
  world.targets.end()
})

/** A board with a post, and the box that is to follow it. */
async function begin(seed: string, ack: Ack = 'quorum'): Promise<SecondBox> {
  const layout = { placement: 'back', shards: 1, ack } as const
  world = await World.begin({ seed, steps: 0, off, layout })
  await world.firstStart()
  await write({ operation: 'post', room: 'lobby', text: 'the first' })
  return world.second!
}

async function write(fields: { readonly operation: string; readonly [field: string]: string }): Promise<void> {
  world.step++
  await world.act(fields.operation, { by: world.model.operator, fields })
  await world.settle()
  world.throwFound()
}

async function follows(second: SecondBox): Promise<void> {
  expect(await second.start(endless, () => world.recover())).toBe(true)
  await caughtUp(second)
}

async function caughtUp(second: SecondBox): Promise<void> {
  for (let tries = 0; tries < 20 && second.board.behindMs > 0; tries++) await world.wait(1_000)
  await world.wait(3_000)
  expect([second.board.behindMs, second.board.size]).toEqual([0, world.board.size])
}

/** The first box is gone, and the second one leads. */
async function takesOver(second: SecondBox): Promise<boolean> {
  await world.sim.kill()
  second.heal()
  const isLeading = await second.lead(0, async () => {})
  second.swap()
  await world.restart()
  return isLeading
}

/** Its path on either box. */
async function putFile(): Promise<string> {
  const bytes = Buffer.from(`a file of step ${world.step}`)
  const fields = { operation: 'blob.put', room: 'lobby', filename: 'a.txt', media_type: 'text/plain' }
  await write({ ...fields, data: bytes.toString('base64url') })
  return `${dataDirectory}/blobs/lobby/${createHash('sha256').update(bytes).digest('hex')}`
}

test('a follower that has heard nothing of the stream may lead: its leader gave it the key with the rest', async () => {
  const second = await begin('key')
  second.servers.isFollowerCutOff = true
  await follows(second)
  second.network.cut = /./
  await write({ operation: 'post', room: 'lobby', text: 'only the stream has it' })
  expect(await takesOver(second)).toBe(true)
  await world.audit()
  world.throwFound()
})

test('attachments that the leader could no longer send are in the stream', async () => {
  const second = await begin('attachment')
  second.servers.isFollowerCutOff = true
  second.network.cut = /^blob/
  await follows(second)
  const file = await putFile()
  // A request without an answer is abandoned after 5 s.
  await world.wait(15_000)
  const { memory } = second.board.machine
  expect(memory.fileExists(`${dataDirectory}/missing-attachments.json`)).toBe(true)
  expect(memory.fileExists(file)).toBe(false)
  expect(await takesOver(second)).toBe(true)
  expect(world.sim.memory.fileExists(file)).toBe(true)
  await world.audit()
  world.throwFound()
})

test.each([1, 7, 8, 9])('a follower that starts stores the attachments that arrive meanwhile: %i', async (n) => {
  const second = await begin(`start ${n}`)
  await follows(second)
  await putFile()
  await caughtUp(second)
  await second.stop(async () => {})
  world.sim.delayMs = 200
  const file = await putFile()
  await follows(second)
  expect(second.board.machine.memory.fileExists(file)).toBe(true)
})

test('deleted and taken-down files leave the disk of a follower too', async () => {
  const second = await begin('deleted')
  await follows(second)
  const [deleted, takenDown, kept] = [await putFile(), await putFile(), await putFile()]
  await caughtUp(second)
  const { memory } = second.board.machine
  expect([deleted, takenDown, kept].map((file) => memory.fileExists(file))).toEqual([true, true, true])
  const [put] = [...world.model.sent.values()].filter(({ fields }) => fields.operation === 'blob.put')
  await write({ operation: 'blob.delete', target: put!.id, reason: 'the wrong file' })
  await write({ operation: 'blob.takedown', target: takenDown.slice(-64), reason: 'Malware.' })
  await caughtUp(second)
  expect([deleted, takenDown, kept].map((file) => memory.fileExists(file))).toEqual([false, false, true])
  expect([deleted, takenDown, kept].map((file) => world.sim.memory.fileExists(file))).toEqual([false, false, true])
  // A takedown leaves unsigned records: they tell `fsck` that the file need not be there.
  checkFiles(world.board)
})

test('lost requests to the leader keep a follower from the stream for a few seconds only', async () => {
  const second = await begin('lost frames', 'copy')
  await follows(second)
  second.network.cut = /^frames$/
  await second.stop(async () => {})
  expect(await second.start(endless, () => world.recover())).toBe(true)
  const begun = world.now
  await write({ operation: 'post', room: 'lobby', text: 'waits for a copy' })
  expect(world.now - begun).toBeLessThan(12)
})

test('a leader that sends no attachment is waited for once, however many a follower lacks', async () => {
  const second = await begin('lost attachments')
  await follows(second)
  await second.stop(async () => {})
  for (let files = 0; files < 6; files++) await putFile()
  second.servers.isFollowerCutOff = true
  second.network.cut = /^blob/
  const begun = world.now
  expect(await second.start(endless, () => world.recover())).toBe(true)
  await caughtUp(second)
  expect(world.now - begun).toBeLessThan(20)
})

test('a read that waits for a copy is refused as overloaded after a while, with retry_after, if no follower runs', async () => {
  const second = await begin('no follower', 'copy')
  await follows(second)
  await second.stop(async () => {})
  const { board, model } = world
  const by = model.operator
  const target = signerOf('a delegate').publicKey
  const fields = { operation: 'delegation.create', target, ttl: 3_600, data: '{"schema":1,"scopes":["board:post"]}' }
  await world.act('delegate', { by, fields, coSigner: 'a delegate' })
  await world.wait(100)
  const stamp = {
    serviceId: board.serviceId,
    timestamp: world.now,
    nonce: 'n'.repeat(22),
    signatures: new Signatures(),
  }
  const { body } = signed({ operation: 'events.list', room: 'lobby' }, by.keys[by.key]!, stamp)
  const reply = await world.sim.until(board.send(body))
  expect(envelopeOf(reply as Reply)).toMatchObject({
    ok: false,
    error: { code: 'overloaded', message: 'this board did not answer in time: try again', retry_after: 1 },
  })
})
