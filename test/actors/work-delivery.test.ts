/**
 * Letters between the market and the rooms: delivered in the turn that made them, exactly once over a crash anywhere, and between shards.
 */

import { createHash } from 'node:crypto'
import { cpSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { deciders } from '../../actors/deciders.ts'
import type { AnyWriteName } from '../../actors/operations.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import { none } from '../../actors/records/event-index.ts'
import { registryName } from '../../actors/records/record.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import { Shard, shardOf } from '../../actors/shard.ts'
import { type Carried, WorkDelivery } from '../../actors/works/delivery.ts'
import { resultSha256 } from '../../actors/works/letters.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import { systemClock } from '../../src/clock.ts'
import { retryReply } from '../../src/workers/retry-reply.ts'
import { FailedRead } from '../../storage/disk.ts'
import { FRAME_HEADER_BYTES } from '../../storage/frame.ts'
import type { Journal } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { SEGMENT_HEADER_BYTES, segmentPath } from '../../storage/segment.ts'
import { openWhole } from '../../storage/whole-decisions.ts'
import { type Person, someone, terms } from '../support/market/market-harness.ts'
import { scratchDirectory } from '../support/scratch.ts'

const began = 1_790_000_000
const generation = '1'.repeat(32)
const [ada, bob, board] = ['ada', 'bob', 'board'].map(someone) as [Person, Person, Person]
const keeper = someone('keeper').id
const reviews = 'reviews'

type Said = { readonly args?: object; readonly text?: string; readonly operator?: boolean; readonly isOwn?: boolean }

/** A signed command; the board's own has no nonce. */
function letter(by: Person, op: AnyWriteName, to: string, said: Said = {}): WriteLetter {
  const { args = {}, text = '', operator = false, isOwn = false } = said
  const nonce = isOwn ? '' : `${op} ${to} ${by.id} ${text} ${JSON.stringify(args)}`
  const command = { operation: op, room: to, text, timestamp: began, nonce }
  const signed = Buffer.from(JSON.stringify({ command }))
  const sha = createHash('sha256').update(signed).digest()
  return {
    ...{ op, to, id: sha.subarray(0, 16), sha, author: by.id, timestamp: began, nonce, requestId: '', via: 'command' },
    by: { key: by.key, sig: Buffer.alloc(64), signed },
    ...{ limited: 0, rotated: false, suspended: false, operator },
    args: args as WriteLetter['args'],
  }
}

type Member = { readonly shard: Shard; readonly delivery: WorkDelivery; readonly journal: Journal; frames: number }

/** Shards in one process, and a front between them that forwards letters. */
class Shards {
  readonly members: Member[] = []
  readonly directories: readonly string[]
  /** Turns that wrote something, with what a crash after each would leave of all shards. */
  readonly appends: { readonly shard: number; readonly copies: readonly string[]; readonly before: number }[] = []
  readonly #resting = new Set<number>()
  #rested = () => {}
  #keeps: boolean
  #isLost = false
  /** Unix seconds. */
  now = began
  /** So many reads for mail fail from now on. */
  failing = 0

  constructor(directories: readonly string[], keeps: boolean) {
    this.directories = directories
    this.#keeps = keeps
    for (const [number, directory] of directories.entries()) this.members.push(this.#open(number, directory))
    for (const { shard, journal } of this.members) shard.resume(journal.nextSeq - 1)
  }

  get count(): number {
    return this.directories.length
  }

  async rest(): Promise<void> {
    if (this.#resting.size < this.count) await new Promise<void>((resolve) => (this.#rested = resolve))
    for (const { delivery, shard } of this.members) {
      delivery.release()
      shard.wake()
    }
    for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate)
  }

  say(said: WriteLetter): Promise<ShardAnswer> {
    return new Promise((resolve) => this.members[shardOf(said.to, this.count)]!.shard.post(said, resolve))
  }

  close(): void {
    this.#isLost = true
    for (const { journal } of this.members) journal.close()
  }

  #open(number: number, directory: string): Member {
    const journal = openWhole({ disk: machineDisk, directory })
    const isHere = (actor: string) => shardOf(actor, this.count) === number
    let delivery: WorkDelivery | undefined
    const shard: Shard = new Shard({
      ...{
        number,
        journal,
        deciders,
        replyToRetry: retryReply,
        firstRooms: [{ name: reviews, keeper }].filter(({ name }) => isHere(name)),
      },
      wallSeconds: () => this.now,
      soon: systemClock.soon,
      diskHasRoom: () => true,
      fault: (damage) => damage.message,
      toLog: (through) =>
        void setImmediate(() => {
          const head = { size: 1, checkpoint: '' }
          if (!this.#isLost) shard.confirm({ through, firstChange: 1, firstLeaf: 0, head })
        }),
      snapshot: () => undefined,
      afterTurn: (seq) => this.#note(number, seq),
      ...{ mailboxMax: 100, lettersPerTurnMax: 100, unconfirmedMax: 1_000 },
      mail: (state, record) => {
        const readOrFail: typeof record = (seq) => {
          if (this.failing-- > 0) throw new FailedRead({ path: 'journal', offset: 0, expected: `frame ${seq}` })
          return record(seq)
        }
        delivery = new WorkDelivery({
          ...{ state, record: readOrFail, isHere, generation, board: board.id },
          sign: (fields, { cause, at }) => {
            const signed = Buffer.from(JSON.stringify({ command: { ...fields, timestamp: at, nonce: cause } }))
            const sha = createHash('sha256').update(signed).digest()
            return { sha, by: { key: board.key, sig: Buffer.alloc(64), signed } }
          },
          carry: (letters) => setImmediate(() => this.#carry(number, letters)),
          requested: () => {},
          atRest: () => {
            this.#resting.add(number)
            if (this.#resting.size === this.count) this.#rested()
          },
          report: (facts) => {
            if (facts.code !== 'internal') throw new Error(JSON.stringify(facts))
          },
        })
        return delivery
      },
    })
    return { shard, delivery: delivery!, journal, frames: journal.nextSeq - 1 }
  }

  /** Every letter twice: any delivery may be a repetition. */
  #carry(from: number, letters: readonly Carried[]): void {
    if (this.#isLost) return
    const { delivery, shard } = this.members[from]!
    for (const { n, letter: carried } of letters) {
      void this.say(carried)
      void this.say(carried).then((answer) => {
        if (this.#isLost) return
        delivery.carried(n, answer, undefined)
        shard.wake()
      })
    }
  }

  #note(number: number, seq: number): void {
    const member = this.members[number]
    if (member === undefined || seq === member.frames) return
    const before = member.frames
    member.frames = seq
    if (this.#keeps) this.appends.push({ shard: number, copies: this.directories.map(copied), before })
  }
}

function copied(directory: string): string {
  const copy = join(scratchDirectory(), 'journal')
  cpSync(directory, copy, { recursive: true })
  return copy
}

/** Where each frame of the only segment begins, and its end. */
function offsetsOf(directory: string): number[] {
  const journal = openWhole({ disk: machineDisk, directory: copied(directory) })
  const offsets = [SEGMENT_HEADER_BYTES]
  for (const { payload } of journal.scan(1)) offsets.push(offsets.at(-1)! + FRAME_HEADER_BYTES + payload.length)
  journal.close()
  return offsets
}

const limits = { claims: 3, holds: 32, reward: 1_000_000 }
const posting = { page: 'main', kind: 'result', supersedes: '', attachments: [], ttl: 0, proofBits: 0 }

/** Every command in the life of a work in this room, in order. */
function lifeIn(room: string) {
  const hex = ({ id }: WriteLetter) => Buffer.from(id).toString('hex')
  const asking = {
    generation,
    amount: 100,
    fee: 1,
    lifetime: 604_800,
    title: 'a work',
    capabilities: [],
    terms,
    limits,
  }
  const more = { eligibility: 'open', simulated: false, reviewer: '', reviewer_key: '', seen: false, proof_bits: 0 }
  /** The work of a `work.create` is named after its command. */
  const create = (by: Person, where: string) => {
    const made = letter(by, 'work.create', marketName, { text: `please, in ${where}` })
    return { ...made, args: { ...asking, ...more, room: where, work: hex(made) } }
  }
  const created = create(ada, room)
  const work = hex(created)
  const about = (by: Person, op: AnyWriteName, args: object = {}, text = '') =>
    letter(by, op, marketName, {
      text,
      args: {
        ...{ work, generation, amount: 0, reason: '', ttl: 86_400, limits, proof_bits: 0 },
        ...{ fee_basis_points: 100, bond_percent: 10, ...args },
      },
    })
  const result = letter(bob, 'post', room, { text: 'done', args: { ...posting, replyTo: work } })
  const edit = letter(bob, 'post', room, {
    text: better,
    args: { ...posting, kind: '', replyTo: '', supersedes: hex(result) },
  })
  const refused = create(ada, reviews)
  const commands = {
    refused,
    created,
    edited: about(ada, 'work.edit', {}, 'please, and soon'),
    claimed: about(bob, 'work.claim'),
    result,
    early: about(bob, 'work.submit', { amount: 9, result: hex(result) }),
    submitted: about(bob, 'work.submit', { amount: 1, result: hex(result) }),
    changed: edit,
    accepted: about(ada, 'work.accept', { accept_changed: true, result_sha256: resultSha256(better, []) }),
  }
  return { work, commands }
}

const better = 'done, and better'
const codes: Readonly<Record<string, string>> = { refused: 'room_write_restricted', early: 'stale_fence' }

async function live(shards: Shards, { commands }: ReturnType<typeof lifeIn>): Promise<void> {
  for (const [name, command] of Object.entries(commands)) {
    const answer = await shards.say(command)
    expect([name, answer.ok ? '' : answer.refusal.code], JSON.stringify(answer)).toEqual([name, codes[name] ?? ''])
    // Changes to a result reach the market after the answer to the identity that made them.
    while (shards.members.some(({ shard }) => shard.state.bound.unreported().length > 0))
      await new Promise(setImmediate)
  }
}

/** Everything that a finished life leaves, announced once and paid once. */
function leftOf(shards: Shards, { work }: ReturnType<typeof lifeIn>, room: string): object {
  const market = shards.members[shardOf(marketName, shards.count)]!.shard.state
  const { state } = shards.members[shardOf(room, shards.count)]!.shard
  const registry = shards.members[shardOf(registryName, shards.count)]!.shard.board
  const { events } = state.board
  const thread: string[] = []
  for (let slot = events.find(Buffer.from(work, 'hex')); slot !== none; slot = events.next(slot))
    thread.push(`${state.board.kind(slot)} ${events.idHex(slot)}`)
  const { state: stands, steps, result } = market.market.find(work)!
  const marked = state.bound.find(work)!
  return {
    thread,
    ...{ stands, steps, sha256: result?.sha256, current: result?.current },
    told: marked.lastTell?.state,
    left: [marked.bindings.size, marked.unreported.length, [...market.market.reservations].length],
    asks: market.mail.asks(0, 100),
    credits: [ada, bob].map(({ id }) => market.market.ledger.available(`user:${id}`)),
    handle: registry.authors.get(board.id)?.handle,
  }
}

/** A room of the market's shard, and one of another. */
function roomOn(shard: number, shards: number): string {
  return Array.from({ length: 50 }, (_, n) => `hall-${n}`).find((name) => shardOf(name, shards) === shard)!
}

async function begun(count: number): Promise<Shards> {
  const directories = Array.from({ length: count }, () => join(scratchDirectory(), 'journal'))
  const setting = new Shards(directories, false)
  await setting.rest()
  const args = { generation, rewards: 0 }
  await setting.say(letter(ada, 'market.begin', marketName, { args, isOwn: true }))
  const grant = { args: { target: ada.id, amount: 500 }, operator: true }
  expect(await setting.say(letter(keeperOf(), 'credit.grant', marketName, grant))).toMatchObject({ ok: true })
  setting.close()
  return new Shards(directories, true)
}

function keeperOf(): Person {
  return someone('keeper')
}

let open: Shards[] = []
afterEach(() => {
  for (const each of open) each.close()
  open = []
})

test('in one shard each command about a work is one append, with everything that follows from it', async () => {
  const shards = await begun(1)
  open.push(shards)
  await shards.rest()
  const life = lifeIn('lobby')
  await live(shards, life)
  // Nothing is written for the submission with an old fence.
  expect(shards.appends).toHaveLength(Object.keys(life.commands).length - 1)
  const { mail, bound } = shards.members[0]!.shard.state
  expect([mail.asks(0, 9), mail.notifications(0, 9), bound.unreported(), bound.unsettled()]).toEqual([[], [], [], []])
  expect(leftOf(shards, life, 'lobby')).toMatchObject({
    stands: 'accepted',
    told: 'accepted',
    left: [0, 0, 0],
    credits: [399, 100],
    handle: 'broadside',
  })
})

const places = [
  ['the only shard', 1, 'lobby'],
  ['the shard of the market', 2, roomOn(shardOf(marketName, 2), 2)],
  ['another shard than the market', 2, roomOn(1 - shardOf(marketName, 2), 2)],
] as const

test.each(places)(
  'wherever a life in %s is cut, the next start and the same commands finish it once',
  async (_, count, room) => {
    const shards = await begun(count)
    await shards.rest()
    const life = lifeIn(room)
    await live(shards, life)
    const whole = leftOf(shards, life, room)
    shards.close()
    expect(whole).toMatchObject({ stands: 'accepted', told: 'accepted', left: [0, 0, 0], asks: [] })
    for (const [n, { shard, copies, before }] of shards.appends.entries()) {
      const offsets = offsetsOf(copies[shard]!)
      // Everything appended, and every part of it that a crash may leave.
      for (let frames = offsets.length - 1; frames >= before; frames--) {
        const cut = copies.map(copied)
        truncateSync(segmentPath(cut[shard]!, 1), offsets[frames]!)
        const next = new Shards(cut, false)
        await next.rest()
        // A reply that a room has bound and the market never accepted is released.
        expect(next.members.flatMap(({ shard: { state } }) => state.bound.unsettled())).toEqual([])
        await live(next, life)
        expect(leftOf(next, life, room), `append ${n} cut at frame ${frames}`).toEqual(whole)
        next.close()
      }
    }
  },
)

test('a request that the disk fails to read is not answered as posted, and is posted once it can be read', async () => {
  const shards = await begun(1)
  open.push(shards)
  await shards.rest()
  const { work, commands } = lifeIn('lobby')
  const { state } = shards.members[0]!.shard
  const isPosted = () => state.board.events.find(Buffer.from(work, 'hex')) !== none
  shards.failing = 1
  const answers = [await shards.say(commands.created), await shards.say(commands.created)]
  const refused = {
    ok: false,
    refusal: { code: 'internal', message: expect.stringContaining('send the same command') },
  }
  expect(answers).toEqual([{ ...refused, isWritten: true }, refused])
  expect(isPosted()).toBe(false)
  shards.now += 2
  expect(await shards.say(commands.created)).toMatchObject({ ok: true, duplicate: true })
  expect(isPosted()).toBe(true)
})
