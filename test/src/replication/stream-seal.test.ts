/** Only the boxes of a board can read what its stream carries, and nobody can once the stream no longer holds it. */
import { createHmac, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { Assembly, parseHeader, partsOf } from '../../../src/replication/batch.ts'
import { StreamSeal, sealIn } from '../../../src/replication/stream-seal.ts'
import { MemoryDisk } from '../../support/memory-disk.ts'

const noon = 20_000 * 86_400 + 43_200
const text = 'a text of a private room'

/** A box, whose clock the test controls. `day`: days after the first one. */
class Box {
  readonly disk = new MemoryDisk({ soon: (callback) => callback(), randomBelow: () => 0 })
  day = 0
  seal = this.open()

  open(): StreamSeal {
    const wallSeconds = () => noon + this.day * 86_400
    return new StreamSeal({ disk: this.disk, dataDirectory: '/board', wallSeconds, random: randomBytes })
  }

  /** Its process exits, and starts on this day. */
  startOn(day: number): void {
    this.day = day
    this.seal = this.open()
  }

  get state() {
    return sealIn(this.disk, '/board')!
  }
}

function leaderBox(): Box {
  const box = new Box()
  box.disk.makeDirectory('/board')
  box.seal.begin()
  return box
}

function followerOf(leader: Box): Box {
  const box = new Box()
  box.day = leader.day
  box.disk.makeDirectory('/board')
  box.seal.take(leader.state)
  return box
}

/** The messages of a batch, as they are sent and received. */
function messages(leader: Box, payload: Buffer = Buffer.from(text)) {
  const header = { version: 1, epoch: 1, leader: 'a'.repeat(32), journals: [] } as const
  return partsOf({ header, payload }, leader.seal).map(({ header, bytes }) => ({
    header: parseHeader(JSON.stringify(header))!,
    bytes,
  }))
}

function read(box: Box, parts: ReturnType<typeof messages>): string | undefined {
  const assembly = new Assembly(box.seal)
  const [batch] = parts.map((part) => assembly.add(part)).filter((found) => found !== undefined)
  return batch?.payload.toString()
}

test('a message has nothing of the text, and a box with the seal reads it, also after both have restarted', () => {
  const leader = leaderBox()
  const follower = followerOf(leader)
  leader.startOn(1)
  const parts = messages(leader)
  expect(JSON.stringify(parts[0]!.header) + parts[0]!.bytes).not.toContain(text)
  follower.startOn(1)
  expect(read(follower, parts)).toBe(text)
  expect(read(leader, parts)).toBe(text)
  const large = randomBytes(2_000_000)
  expect(new Set(messages(leader, large).map(({ header }) => header.parts))).toEqual(new Set([3]))
  expect(read(follower, messages(leader, large))).toBe(large.toString())
})

test('after a skipped part of a later epoch, older ones complete no batch', () => {
  const leader = leaderBox()
  const parts = messages(leader, randomBytes(2_000_000))
  const [first, ...rest] = parts
  const assembly = new Assembly(leader.seal)
  expect(assembly.add(first!)).toBe(undefined)
  assembly.skip({ ...first!, header: { ...first!.header, epoch: first!.header.epoch + 1 } })
  expect([...rest, ...parts].map((part) => assembly.add(part))).toEqual([...rest, ...parts].map(() => undefined))
})

test('the same text is never sealed to the same bytes', () => {
  const leader = leaderBox()
  const [one, other] = [messages(leader)[0]!, messages(leader)[0]!]
  expect(Buffer.compare(one.bytes, other.bytes)).not.toBe(0)
})

test('a message is readable for three more days; then no box has its key, and it cannot be derived', () => {
  const leader = leaderBox()
  const follower = followerOf(leader)
  const { seal } = messages(leader)[0]!.header
  const parts = messages(leader)
  for (const box of [leader, follower]) {
    box.startOn(3)
    expect(read(box, parts)).toBe(text)
    const before = box.state
    box.startOn(4)
    expect(box.seal.opens(seal)).toBe(false)
    expect(() => read(box, parts)).toThrow('there is no key for this message')
    expect(box.state.day).toBe(seal.day + 1)
    // One way: the next day's key is derived from the day's, and the file has no other.
    const next = createHmac('sha256', Buffer.from(before.key, 'hex')).update('next day').digest('hex')
    expect([before.day, box.state.key]).toEqual([seal.day, next])
    expect(box.disk.readWhole('/board/stream-seal.json').toString()).not.toContain(before.key)
  }
  expect(read(follower, messages(leader))).toBe(text)
})

test('a box that runs forgets on its own', () => {
  const leader = leaderBox()
  const { seal } = messages(leader)[0]!.header
  leader.day = 4
  leader.seal.forget()
  expect(leader.seal.opens(seal)).toBe(false)
  expect(leader.state.day).toBe(seal.day + 1)
})

test('a message that was changed is not opened, in its bytes or in its header', () => {
  const leader = leaderBox()
  const [part] = messages(leader)
  const { header, bytes } = part!
  for (let at = 0; at < bytes.length; at += 7) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    expect(() => read(leader, [{ header, bytes: changed }])).toThrow('was changed after it was sealed')
  }
  expect(() => read(leader, [{ header: { ...header, epoch: 2 }, bytes }])).toThrow('was changed')
  expect(() => read(leader, [{ header, bytes: Buffer.alloc(5) }])).toThrow('no key')
})

test('another board opens nothing, whatever day a message names', () => {
  const [part] = messages(leaderBox())
  const other = leaderBox()
  expect(() => read(other, [part!])).toThrow('no key')
  const { header, bytes } = part!
  const { chain } = other.state
  expect(() => read(other, [{ header: { ...header, seal: { ...header.seal, chain } }, bytes }])).toThrow('was changed')
  const far = { chain, day: Number.MAX_SAFE_INTEGER }
  expect(() => read(other, [{ header: { ...header, seal: far }, bytes }])).toThrow('no key')
})

test('after a wrong clock a leader starts over, and its followers get the new keys', () => {
  const leader = leaderBox()
  const follower = followerOf(leader)
  leader.startOn(400)
  leader.startOn(1)
  const { chain } = leader.state
  leader.seal.begin()
  expect(leader.state.chain).not.toBe(chain)
  const parts = messages(leader)
  expect(parts[0]!.header.seal.day).toBe(20_001)
  follower.startOn(1)
  expect(follower.seal.opens(parts[0]!.header.seal)).toBe(false)
  follower.seal.take(leader.state)
  expect(read(follower, parts)).toBe(text)
})

test('a header without the name of a seal is invalid', () => {
  const { header } = messages(leaderBox())[0]!
  expect(parseHeader(JSON.stringify(header))).toEqual(header)
  for (const seal of [undefined, {}, { chain: 'x', day: 1 }, { chain: header.seal.chain, day: -1 }])
    expect(parseHeader(JSON.stringify({ ...header, seal }))).toBeUndefined()
})
