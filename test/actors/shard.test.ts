import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { deciders } from '../../actors/deciders.ts'
import { findEvents } from '../../actors/reading.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import { registryName, stubOf } from '../../actors/records/record.ts'
import type { Decider, WriteLetter } from '../../actors/records/write.ts'
import type { PostArgs } from '../../actors/rooms/room.ts'
import { Shard, type ShardOptions, shardOf } from '../../actors/shard.ts'
import type { State } from '../../actors/state.ts'
import { opensslSigner } from '../../src/cli/sign.ts'
import { systemClock } from '../../src/clock.ts'
import { type Actors, type TakeReply, whenDecided } from '../../src/command/ports.ts'
import { signingBytes } from '../../src/format/signing.ts'
import { EventFiles } from '../../src/workers/event-files.ts'
import { retryReply } from '../../src/workers/retry-reply.ts'
import { type Disk, prefetchBatchMax } from '../../storage/disk.ts'
import { Damage, Journal } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { FaultyDisk } from '../support/faulty-disk.ts'
import { MemoryShelf } from '../support/memory-shelf.ts'
import { patience } from '../support/patience.ts'
import { flipByte, scratchDirectory } from '../support/scratch.ts'

const ada = opensslSigner(Buffer.alloc(32, 1))

type Fields = { text: string; nonce: string; timestamp: number; request_id?: string; reply_to?: string; ttl?: number }

function letter({ text, nonce, timestamp, request_id = '', reply_to = '', ttl = 0 }: Fields): WriteLetter {
  const command = { operation: 'post', room: 'lobby', text, request_id, public_key: ada.publicKey, timestamp, nonce }
  const signed = signingBytes('test', command)
  const sha = createHash('sha256').update(signed).digest()
  return {
    op: 'post',
    to: 'lobby',
    id: sha.subarray(0, 16),
    sha,
    author: ada.id,
    by: { key: Buffer.from(ada.publicKey, 'base64url'), sig: ada.sign(signed), signed },
    timestamp,
    nonce,
    requestId: request_id,
    via: 'command',
    limited: 0,
    rotated: false,
    suspended: false,
    operator: false,
    args: {
      page: 'main',
      kind: 'note',
      replyTo: reply_to,
      supersedes: '',
      attachments: [],
      ttl,
      proofBits: 0,
    } satisfies PostArgs,
  }
}

function profileLetter(timestamp: number, text = 'a profile'): WriteLetter {
  const data = JSON.stringify({ schema: 1, description: text })
  const stamp = { public_key: ada.publicKey, timestamp, nonce: 'n' }
  const signed = signingBytes('test', { operation: 'identity.profile.set', data, ...stamp })
  const sha = createHash('sha256').update(signed).digest()
  const { by, ...rest } = letter({ text, nonce: 'n', timestamp })
  const id = sha.subarray(0, 16)
  return { ...rest, op: 'identity.profile.set', to: registryName, id, sha, by: { ...by, signed }, args: {} }
}

/**
 * A shard on a real journal, with a clock that the test sets. Its log confirms immediately, and has everything that it was notified of
 * before.
 */
function startShard(
  directory = scratchDirectory(),
  log: 'confirms' | 'is silent' | 'begins' = 'confirms',
  own: Readonly<Record<string, Decider>> = {},
  { disk = machineDisk, isBusy = false, ...more }: Partial<ShardOptions> & { readonly disk?: Disk } = {},
) {
  const clock = { seconds: 1_790_000_000 }
  const journal = Journal.open({ disk, directory })
  const shard: Shard = new Shard({
    number: 0,
    journal,
    deciders: { ...deciders, ...own },
    replyToRetry: retryReply,
    wallSeconds: () => clock.seconds,
    soon: systemClock.soon,
    diskHasRoom: () => true,
    fault: (damage) => damage.message,
    toLog: (through) => log !== 'is silent' && setImmediate(() => confirm(through)),
    snapshot: () => undefined,
    afterTurn: () => {},
    firstRooms: [],
    mailboxMax: 100,
    lettersPerTurnMax: 100,
    unconfirmedMax: 1000,
    isBusy,
    ...more,
  })
  const confirm = (through: number) =>
    shard.confirm({ through, firstChange: 1, firstLeaf: 0, head: { size: 1, checkpoint: '' } })
  const post = (fields: Fields) => new Promise<ShardAnswer>((done) => shard.post(letter(fields), done))
  if (log !== 'begins') shard.resume(journal.nextSeq - 1)
  return { clock, journal, shard, post, confirm, directory }
}

test('a decision that meets damage is refused, and the other letters of its turn are carried out', async () => {
  const damage = new Damage({ path: 'a', offset: 1, expected: 'this', found: 'that' })
  const react: Decider = (situation, letter) => {
    if (letter.nonce === 'bad') throw damage
    return deciders.post!(situation, letter)
  }
  const { post, clock, shard } = startShard(undefined, undefined, { post: react })
  const told = await Promise.all(
    ['good', 'bad', 'more'].map((nonce) => post({ text: nonce, nonce, timestamp: clock.seconds, request_id: nonce })),
  )
  expect(told.map((each) => each.ok)).toEqual([true, false, true])
  expect(told[1]).toMatchObject({ refusal: { code: 'internal', message: damage.message } })
  expect(shard.board.events.count).toBe(2)
})

test('a decision synced in the background is answered once durable, and nothing is decided meanwhile', async () => {
  const { post, clock, shard, journal } = startShard(undefined, undefined, {}, { isBusy: true })
  const posts = Array.from({ length: 20 }, (_, n) => post({ text: `${n}`, nonce: `${n}`, timestamp: clock.seconds }))
  let isAnswered = false
  void Promise.race(posts).then(() => {
    isAnswered = true
  })
  await new Promise((done) => setImmediate(done))
  expect([shard.isWriting, journal.nextSeq, isAnswered]).toEqual([true, 1, false])
  const late = post({ text: 'late', nonce: 'late', timestamp: clock.seconds })
  expect(shard.board.events.count).toBe(20)
  const answers = await Promise.all([...posts, late])
  expect(answers.every(({ ok }) => ok)).toBe(true)
  expect(answers.map((each) => each.ok && each.reply.seq)).toEqual(answers.map((_, n) => n + 1))
  // The room, the posts, and the late one.
  expect(journal.nextSeq).toBe(23)
})

test('after a failed background sync nothing is answered, and nothing more is decided', async () => {
  const disk = new FaultyDisk()
  const { post, clock, shard, journal } = startShard(undefined, undefined, {}, { disk, isBusy: true })
  let answered = 0
  const send = (name: string) =>
    Array.from({ length: 10 }, (_, n) =>
      post({ text: name, nonce: `${name} ${n}`, timestamp: clock.seconds }).then(() => answered++),
    )
  const others = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  const thrown = new Promise<Error>((done) => process.once('uncaughtException', done))
  disk.failNextSync = true
  send('before')
  expect((await thrown).name).toBe('SyncFailed')
  for (const each of others) process.on('uncaughtException', each)
  send('after')
  await new Promise((done) => setTimeout(done, 50))
  expect([answered, shard.isWriting, journal.nextSeq, shard.board.events.count]).toEqual([0, true, 1, 10])
})

test('a shard that stops takes no further turn, and finishes the one in flight to the disk', async () => {
  const { post, clock, shard, journal } = startShard(undefined, undefined, {}, { isBusy: true })
  const posts = Array.from({ length: 20 }, (_, n) => post({ text: `${n}`, nonce: `${n}`, timestamp: clock.seconds }))
  await new Promise((done) => setImmediate(done))
  void post({ text: 'late', nonce: 'late', timestamp: clock.seconds })
  await shard.stop()
  expect([shard.isWriting, journal.nextSeq]).toEqual([false, 22])
  journal.close()
  await Promise.all(posts)
  await new Promise((done) => setTimeout(done, 20))
  expect(shard.board.events.count).toBe(20)
})

test.each([
  ['identity.erase', { target: ada.id, reason: 'its owner asked', isBoard: false }],
  ['identity.suspend', { target: ada.id, reason: 'spam', isBoard: false, hidesPosts: false }],
] as const)('after %s the registry refuses what that identity sent before the main thread knew', async (op, args) => {
  const { clock, shard } = startShard()
  const timestamp = clock.seconds
  const operator = opensslSigner(Buffer.alloc(32, 2))
  const sign = (name: string, by = ada): WriteLetter => ({
    ...letter({ text: name, nonce: name, timestamp }),
    ...{ author: by.id, to: registryName },
  })
  const letters: WriteLetter[] = [
    { ...sign(op, operator), op, operator: true, args },
    profileLetter(timestamp),
    { ...sign('handle'), op: 'identity.register', args: { handle: 'ada' } },
    { ...sign('late'), op: 'handle.claim', nonce: '', args: { handle: 'ada' } },
  ]
  const answers = await Promise.all(letters.map((each) => new Promise<ShardAnswer>((done) => shard.post(each, done))))
  expect(answers).toMatchObject([
    { ok: true },
    { ok: false, refusal: { code: 'suspended' } },
    { ok: false, refusal: { code: 'suspended' } },
    { ok: true, reply: { handle: '', notApplied: 'suspended' } },
  ])
  expect([shard.board.authors.get(ada.id)?.handle, shard.state.people.profile(ada.id)]).toEqual([undefined, undefined])
})

test('letters of one turn are judged by what the turn has already decided', async () => {
  const { post, clock, shard } = startShard()
  const fields = { text: 'one', nonce: 'n', timestamp: clock.seconds, request_id: 'r' }
  const answers = await Promise.all([
    post(fields),
    post(fields),
    post({ ...fields, text: 'two', request_id: '' }),
    post({ ...fields, nonce: 'other' }),
    post({ ...fields, nonce: 'third', text: 'three' }),
    post({ ...fields, nonce: 'fourth', text: 'four', request_id: '' }),
  ])
  const first = createHash('sha256').update(letter(fields).by.signed).digest('hex')
  expect(answers).toMatchObject([
    { ok: true, reply: { seq: 1 } },
    { ok: true, duplicate: true, reply: { seq: 1, sha: first } },
    { ok: false, refusal: { code: 'nonce_reused' } },
    { ok: true, duplicate: true, reply: { seq: 1, sha: first } },
    { ok: false, refusal: { code: 'request_id_reused' } },
    { ok: true, reply: { seq: 2 } },
  ])
  expect(shard.board.events.count).toBe(2)
})

test('when the clock goes back entry times do not, and commands of the new time are accepted', async () => {
  const { post, clock, shard, journal, directory } = startShard()
  const times = async () =>
    await post({ text: `${clock.seconds}`, nonce: `${clock.seconds}`, timestamp: clock.seconds })
  const first = await times()
  clock.seconds -= 3600
  const second = await times()
  clock.seconds += 1800
  const third = await times()
  expect([first, second, third]).toMatchObject([
    { ok: true, reply: { at: 1_790_000_000 } },
    { ok: true, reply: { at: 1_790_000_000 } },
    { ok: true, reply: { at: 1_790_000_000 } },
  ])
  expect(await post({ text: 'x', nonce: 'x', timestamp: 1_790_000_000 })).toMatchObject({
    refusal: { code: 'stale_timestamp' },
  })
  expect(shard.board.events.count).toBe(3)
  journal.close()
  const restarted = startShard(directory)
  restarted.clock.seconds -= 86_400
  const fields = { text: 'again', nonce: 'again', timestamp: restarted.clock.seconds }
  expect(await restarted.post(fields)).toMatchObject({ ok: true, reply: { at: 1_790_000_000, seq: 4 } })
})

test('what the market accepted uses no nonce or request id of the room that posts it, before and after a replay', async () => {
  const first = startShard()
  const timestamp = first.clock.seconds
  const use = { nonce: 'n', request_id: 'r', timestamp }
  const command = { operation: 'work.create', room: 'lobby', text: 'please', public_key: ada.publicKey, ...use }
  const signed = signingBytes('test', command)
  const sha = createHash('sha256').update(signed).digest()
  const { by, ...rest } = letter({ ...use, text: '' })
  const ofBoard = { id: sha.subarray(0, 16), sha, by: { ...by, signed }, nonce: '', requestId: '' }
  const args = { work: sha.toString('hex', 0, 16), reviewer: '', page: '', proofBits: 0 }
  const request: WriteLetter = { ...rest, ...ofBoard, op: 'work.post', args }
  expect(await new Promise((done) => first.shard.post(request, done))).toMatchObject({ reply: { taken: true } })
  const posted = await first.post({ ...use, text: 'a post' })
  expect(posted).toMatchObject({ ok: true })
  first.journal.close()

  const second = startShard(first.directory)
  const again = await second.post({ ...use, text: 'a post', nonce: 'another' })
  expect(again).toMatchObject({ ok: true, duplicate: true })
  second.journal.close()
})

test('a nonce and a request id stay used when their text has left the disk, before and after a replay', async () => {
  const first = startShard()
  const { seconds: timestamp } = first.clock
  const fields = { text: 'a password', nonce: 'n', request_id: 'r', timestamp }
  const posted = await first.post(fields)
  const seq = first.journal.nextSeq - 1
  const profile = profileLetter(timestamp)
  const set = await new Promise((done) => first.shard.post(profile, done))
  expect([posted, set]).toMatchObject([{ ok: true }, { ok: true }])
  const removed = new Set([seq, first.journal.nextSeq - 1])
  for (const _ of first.journal.compact(removed, stubOf, () => expect.unreachable()));

  const uses = async ({ post, shard }: Pick<ReturnType<typeof startShard>, 'post' | 'shard'>) => {
    const answers = await Promise.all([
      post(fields),
      post({ ...fields, text: 'other', request_id: '' }),
      post({ ...fields, nonce: 'other' }),
      new Promise((done) => shard.post(profile, done)),
      new Promise((done) => shard.post(profileLetter(timestamp, 'another profile'), done)),
    ])
    expect(answers).toMatchObject([
      { ok: true, duplicate: true, reply: { seq: 1 } },
      { refusal: { code: 'nonce_reused' } },
      { refusal: { code: 'request_id_reused', message: expect.stringContaining('removed') } },
      { ok: true, duplicate: true },
      { refusal: { code: 'nonce_reused' } },
    ])
  }
  await uses(first)
  first.journal.close()
  const second = startShard(first.directory)
  await uses(second)
  const others = await Promise.all([
    second.post({ ...fields, text: 'free', nonce: 'free', request_id: 'free' }),
    second.post({ ...fields, text: 'without', nonce: 'without', request_id: '' }),
  ])
  expect(others).toMatchObject([{ reply: { seq: 2 } }, { reply: { seq: 3 } }])
  second.journal.close()
})

test('every room belongs to one shard, and many rooms use all shards', () => {
  for (const shards of [1, 2, 3, 7, 64]) {
    const used = Array.from({ length: 2_000 }, (_, n) => shardOf(`room-${n}`, shards))
    expect([...new Set(used)].sort((a, b) => a - b)).toEqual(Array.from({ length: shards }, (_, n) => n))
  }
  expect(shardOf('@registry', 3)).toBe(0)
})

test('letters beyond the capacity of the mailbox are refused immediately as overloaded', async () => {
  const { post, clock } = startShard()
  const answers = await Promise.all(
    Array.from({ length: 150 }, (_, n) => post({ text: `${n}`, nonce: `n${n}`, timestamp: clock.seconds })),
  )
  expect(answers.filter(({ ok }) => ok)).toHaveLength(100)
  const refused = answers.filter((answer) => !answer.ok)
  expect(refused.slice(0, 1)).toMatchObject([{ refusal: { code: 'overloaded', retryAfter: 1 } }])
  expect(refused).toHaveLength(50)
})

test('a restarted shard decides nothing until the log says what it covers; it sends the rest and waits for it', async () => {
  const before = startShard(scratchDirectory(), 'is silent')
  const fields = { text: 'one', nonce: 'n', timestamp: before.clock.seconds }
  void before.post(fields)
  await new Promise(setImmediate)
  expect(before.journal.nextSeq).toBe(3)
  before.journal.close()

  const { shard, post, clock } = startShard(before.directory, 'begins')
  const answered: string[] = []
  const noted = async (name: string, answer: Promise<ShardAnswer>): Promise<ShardAnswer> => {
    const given = await answer
    answered.push(name)
    return given
  }
  const retry = noted('retry', post(fields))
  const next = noted('next', post({ text: 'two', nonce: 'm', timestamp: clock.seconds }))
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  expect(answered).toEqual([])
  shard.resume(0)
  expect(await Promise.all([retry, next])).toMatchObject([
    { ok: true, duplicate: true, reply: { seq: 1 } },
    { ok: true, reply: { seq: 2 } },
  ])
})

test('whenDecided calls back once everything sent before is decided, and writes nothing', async () => {
  const { shard, post, clock, journal } = startShard(scratchDirectory(), 'begins')
  const heard: (readonly [isDecided: boolean, events: number])[] = []
  const actors: Pick<Actors, 'write'> = {
    write: (letter, answer) => {
      const give: TakeReply = answer
      shard.post(letter, give)
    },
  }
  const made = post({ text: 'one', nonce: 'n', timestamp: clock.seconds })
  whenDecided(actors, 'lobby', (isDecided) => heard.push([isDecided, shard.board.events.count]))
  await settled()
  expect(heard).toEqual([])
  shard.resume(0)
  await made
  expect(heard).toEqual([[true, 1]])
  const written = journal.nextSeq
  whenDecided(actors, 'lobby', (isDecided) => heard.push([isDecided, shard.board.events.count]))
  await settled()
  expect([heard.length, journal.nextSeq]).toEqual([2, written])
})

/** Enough rounds of the event loop for everything that happens on its own to happen. */
async function settled(): Promise<void> {
  for (let round = 0; round < 10; round++) await new Promise((done) => setImmediate(done))
}

test('while the log signs a turn, posts gather for the next one', async () => {
  const { post, confirm, journal, clock } = startShard(scratchDirectory(), 'is silent')
  const say = (nonce: string) => post({ text: nonce, nonce, timestamp: clock.seconds })
  const first = say('first')
  await settled()
  const decided = journal.nextSeq
  const later = ['a', 'b', 'c'].map(say)
  await settled()
  expect(journal.nextSeq).toBe(decided)
  confirm(decided - 1)
  expect(await first).toMatchObject({ ok: true })
  await settled()
  expect(journal.nextSeq).toBe(decided + 3)
  confirm(decided + 2)
  for (const answer of await Promise.all(later)) expect(answer).toMatchObject({ ok: true })
})

test('a letter of the board itself, or a crowd of posts, does not wait for the log', async () => {
  const { shard, post, journal, clock } = startShard(scratchDirectory(), 'is silent')
  const say = (nonce: string) => void post({ text: nonce, nonce, timestamp: clock.seconds })
  say('first')
  await settled()
  const decided = journal.nextSeq
  say('second')
  shard.post(letter({ text: 'of the board', nonce: '', timestamp: clock.seconds }), () => {})
  await settled()
  expect(journal.nextSeq).toBe(decided + 2)
  for (let n = 0; n < 50; n++) say(`${n}`)
  await settled()
  expect(journal.nextSeq).toBe(decided + 52)
})

test('a clock that once was in the year 2106 leaves no trace: later posts have the correct time', async () => {
  const { clock, shard, post, directory, journal } = startShard()
  const right = clock.seconds
  const at = async (text: string, timestamp: number): Promise<number> => {
    const answer = await post({ text, timestamp, nonce: text })
    expect(answer).toMatchObject({ ok: true })
    return shard.board.events.at(shard.board.events.count - 1)
  }
  expect(await at('before', right)).toBe(right)
  clock.seconds = 4_294_000_000
  expect(await at('then', clock.seconds)).toBe(4_294_000_000)
  clock.seconds = right + 60
  expect(await at('after', clock.seconds)).toBe(right + 60)
  journal.close()
  const again = startShard(directory)
  expect(again.shard.newest).toBe(right + 60)
  again.clock.seconds = right + 90
  expect(await again.post({ text: 'restarted', timestamp: right + 90, nonce: 'restarted' })).toMatchObject({ ok: true })
  expect(again.shard.board.events.at(again.shard.board.events.count - 1)).toBe(right + 90)
  again.journal.close()
})

class WatchedFiles extends EventFiles {
  /** The file that was begun last: the index has it when this resolves. */
  newest: ReturnType<EventFiles['put']> | undefined

  override put(...made: Parameters<EventFiles['put']>): ReturnType<EventFiles['put']> {
    this.newest = super.put(...made)
    return this.newest
  }
}

test.each([
  [
    'a list of events',
    (state: State) => findEvents(state, { order: 'desc', limit: 100, before: 1_000 }, 0).slots.length,
  ],
  [
    'a list of threads',
    (state: State) => {
      const index = state.threads.at(0)
      const roots = Array.from({ length: 30 }, (_, n) => 3 * n)
      index.prefetch(roots)
      return roots.reduce((posts, root) => posts + 1 + index.sums(root).replies, 0)
    },
  ],
] as const)('on a slow disk %s prefetches many old events at once before it reads them', async (_name, list) => {
  const [disk, files] = [new FaultyDisk(), scratchDirectory()]
  const report = () => {}
  const eventShelf = new WatchedFiles({ clock: systemClock, disk, random: randomBytes, report, directory: files }, 16)
  const { shard, post, journal, clock } = startShard(undefined, undefined, {}, { eventShelf })
  for (let n = 0; n < 90; n++) {
    const root = n - (n % 3)
    const reply = n === root ? {} : { reply_to: shard.board.events.idHex(root) }
    expect(await post({ text: `${n}`, nonce: `${n}`, timestamp: clock.seconds, ...reply })).toMatchObject({ ok: true })
    await eventShelf.newest
  }
  disk.isSlow = true
  expect(list(shard.state)).toBe(90)
  const { reads } = disk
  const read = reads.filter(({ what }) => what === 'read')
  expect(new Set(read.map(({ path }) => path)).size).toBeGreaterThan(2)
  for (const each of read) {
    const before = reads.slice(0, reads.indexOf(each))
    const isIt = ({ what, path, from, to }: (typeof reads)[number]) =>
      what === 'soon' && path === each.path && from === each.from && to === each.to
    expect(before.some(isIt)).toBe(true)
  }
  const turns = reads.filter(({ what }, n) => what === 'soon' && reads[n - 1]?.what !== 'soon')
  expect(turns.length).toBeLessThanOrEqual(Math.ceil(90 / prefetchBatchMax))
  journal.close()
})

test('a snapshot whose old events are damaged, or whose request ids are lost, costs only a replay', async () => {
  const [shelf, files] = [new MemoryShelf(10), scratchDirectory()]
  const report = () => {}
  const events = () =>
    new EventFiles({ clock: systemClock, disk: machineDisk, random: randomBytes, report, directory: files }, 16)
  const first = startShard(undefined, undefined, {}, { shelf, eventShelf: events() })
  const said = (n: number) => {
    const text = { text: `${n}`, nonce: `${n}`, timestamp: first.clock.seconds, request_id: `id ${n}` }
    // A start looks up the page of a post that will expire.
    return n === 3 ? { ...text, ttl: 86_400 } : text
  }
  for (let n = 0; n < 90; n++) expect(await first.post(said(n))).toMatchObject({ ok: true })
  await vi.waitFor(() => expect(first.shard.board.events.hasOld).toBe(true), patience)
  const { bytes, columns } = first.shard.pack(true)
  const { directory } = first
  first.journal.close()
  const startAgain = async () => {
    const snapshot = { seq: first.journal.nextSeq - 1, bytes, columns: columns.map((each) => each.slice()) }
    const [eventShelf, used] = [events(), { is: undefined as boolean | undefined }]
    const options: Partial<ShardOptions> = {
      ...{ shelf, eventShelf, snapshot: (use) => use(snapshot) },
      onRestored: (isUsed) => {
        used.is = isUsed
        eventShelf.restored(isUsed)
      },
    }
    const { shard, post, journal } = startShard(directory, undefined, {}, options)
    expect(shard.board.events.count).toBe(90)
    for (let n = 0; n < 90; n++) expect([n, await post(said(n))]).toMatchObject([n, { ok: true, duplicate: true }])
    journal.close()
    return used.is
  }
  expect(await startAgain()).toBe(true)
  for (const name of readdirSync(files)) {
    const path = join(files, name)
    const whole = readFileSync(path)
    for (let row = 0; row < 16; row++) flipByte(path, whole.length - 60 * row - 30)
  }
  expect(await startAgain()).toBe(false)
  // Neither the snapshot's data is there any more, nor what the failed start had read.
  expect(await startAgain()).toBe(false)
  shelf.tables.delete([...shelf.tables.keys()][0]!)
  expect(await startAgain()).toBe(false)
})

test('a shard that starts from a snapshot knows request ids whose tables are on the shelf, and those the shelf has lost', async () => {
  const shelf = new MemoryShelf(10)
  const { post, clock, shard, journal, directory } = startShard(undefined, undefined, {}, { shelf })
  const said = (n: number) => ({ text: `${n}`, nonce: `${n}`, timestamp: clock.seconds, request_id: `id ${n}` })
  for (let n = 0; n < 35; n++) expect(await post(said(n))).toMatchObject({ ok: true })
  expect([...shelf.tables.keys()].map((name) => name.split('-')[0]).sort()).toEqual([
    ...['nonces', 'nonces', 'nonces', 'request', 'request', 'request'],
  ])
  const { bytes, columns } = shard.pack(true)
  const snapshot = { seq: journal.nextSeq - 1, bytes, columns }
  for (let n = 35; n < 40; n++) await post(said(n))
  journal.close()
  for (const isLost of [false, true]) {
    if (isLost) shelf.tables.delete([...shelf.tables.keys()][0]!)
    const again = startShard(directory, undefined, {}, { shelf, snapshot: (use) => use(snapshot) })
    expect(again.shard.board.events.count).toBe(40)
    for (let n = 0; n < 40; n++) {
      const retried = await again.post({ ...said(n), nonce: `again ${n}` })
      expect([n, retried]).toMatchObject([n, { ok: true, duplicate: true }])
      const reused = await again.post({ ...said(n), text: 'other', request_id: `other ${n}` })
      expect([n, reused]).toMatchObject([n, { refusal: { code: 'nonce_reused' } }])
    }
    again.journal.close()
  }
})
