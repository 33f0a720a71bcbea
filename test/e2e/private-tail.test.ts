import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { readSecret } from '../../src/board-directory.ts'
import { sealReadToken } from '../../src/follow/read-token.ts'
import { CursorSealer } from '../../src/format/cursor.ts'
import { signingBytes } from '../../src/format/signing.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, newNonce, now, person } from '../support/client.ts'
import { blockIds, StreamReader, sseIds } from '../support/stream-reader.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [owner, member, stranger] = [person('owner'), person('member'), person('stranger')]

/** The answer to a rotation from one key to another. */
function rotated(client: Client, from: typeof owner, to: typeof owner) {
  const command = { operation: 'identity.rotate', target: to.publicKey, timestamp: now(), nonce: newNonce() }
  const bytes = signingBytes(client.serviceId, { ...command, public_key: from.publicKey })
  const [signature, proof] = [from, to].map((signer) => signer.sign(bytes).toString('base64url'))
  return client.send(JSON.stringify({ ...command, public_key: from.publicKey, signature, proof }))
}

type Token = { readonly room: string; readonly token: string; readonly expires_at: number; readonly tail: string }

describe.each(['uws', 'node'])('the tail of a private room on the %s engine', (engine) => {
  let board: Board
  let client: Client
  let rooms = 0
  const privateRoom = async () => {
    const room = `inner-${rooms++}`
    const made = await client.command(owner, {
      operation: 'room.create',
      room,
      visibility: 'private',
      members: [member.id],
    })
    expect(made.status).toBe(200)
    return room
  }
  const post = async (room: string, text: string, by = owner) => (await client.post(by, { room, text })).data.event_id!
  const token = async (room: string, fields: { readonly [field: string]: number } = {}, by = member) =>
    (await client.command(by, { operation: 'room.read_token', room, ...fields })).data as unknown as Token

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine, SHARDS: '2' } })
    client = await Client.of(board)
  })
  afterAll(async () => {
    client.close()
    await board.stop()
  })

  test('opens with a member’s token, with earlier posts first and then each post as it is acknowledged', async () => {
    const room = await privateRoom()
    const old = []
    for (let n = 0; n < 7; n++) old.push(await post(room, `number ${n}`))
    const asked = now()
    const { tail, expires_at } = await token(room)
    expect(expires_at - 600).toBeGreaterThanOrEqual(asked)
    expect(expires_at - 600).toBeLessThanOrEqual(now())
    const [text, sse] = [
      new StreamReader(board.address, tail),
      new StreamReader(board.address, `${tail}&last=2`, { accept: 'text/event-stream' }),
    ]
    await text.until((all) => blockIds(all).length === 5)
    await sse.until((all) => sseIds(all).length === 2)
    const fresh = [await post(room, 'one', member), await post(room, 'two\nlines')]
    expect(blockIds(await text.until((all) => all.includes('lines\n\n')))).toEqual([...old.slice(-5), ...fresh])
    expect(sseIds(await sse.until((all) => sseIds(all).length === 4))).toEqual([...old.slice(-2), ...fresh])
    text.close()
    sse.close()
    const resumed = new StreamReader(board.address, `${tail}&since=${old[4]}`)
    expect(blockIds(await resumed.until((all) => all.includes('lines\n\n')))).toEqual([...old.slice(5), ...fresh])
    resumed.close()
  })

  test('names the authors of posts, in the rooms of every shard', async () => {
    const [ada, handle] = [person(`named on ${engine}`), 'ada-in-private']
    await client.command(ada, { operation: 'identity.register', handle })
    for (const shard of [0, 1]) {
      const room = Array.from({ length: 64 }, (_, n) => `named-${n}`).find((name) => shardOf(name, 2) === shard)!
      await client.command(ada, { operation: 'room.create', room, visibility: 'private' })
      await post(room, 'before', ada)
      const { tail } = await token(room, {}, ada)
      const [text, sse] = [
        new StreamReader(board.address, tail),
        new StreamReader(board.address, tail, { accept: 'text/event-stream' }),
      ]
      await Promise.all([text.until((all) => all.includes('before')), sse.until((all) => all.includes('before'))])
      await post(room, 'behind', ada)
      expect((await text.until((all) => all.endsWith('behind\n\n'))).split(` @${handle} `)).toHaveLength(3)
      expect((await sse.until((all) => sseIds(all).length === 2)).split(`"handle":"${handle}"`)).toHaveLength(3)
      text.close()
      sse.close()
    }
  })

  test('loses or repeats nothing when resumed over and over while others post', async () => {
    const room = await privateRoom()
    const made = [await post(room, 'first')]
    const { tail } = await token(room)
    const writing = (async () => {
      for (let n = 1; n < 150; n++) made.push(await post(room, `number ${n}`))
    })()
    const got = [made[0]!]
    for (let round = 0; got.length < 150; round++) {
      const reader = new StreamReader(board.address, `${tail}&since=${got.at(-1)}`)
      const want = Math.min(1 + (round % 9), 150 - got.length)
      const text = await reader.until((all) => blockIds(all).length >= want)
      expect(reader.status).toBe(200)
      reader.close()
      got.push(...blockIds(text.slice(0, text.lastIndexOf('\n\n') + 2)))
    }
    await writing
    expect(got).toEqual(made)
  })

  test('is 403 without a good token, and the refusal of a useless token says why', async () => {
    const [room, other] = [await privateRoom(), await privateRoom()]
    const { token: good } = await token(room)
    const sealer = new CursorSealer(readSecret(machineDisk, join(board.directory, 'keys', 'cursor.key')))
    const late = sealReadToken(sealer, { room, reader: member.id, key: member.publicKey, expires: now() - 1 })
    const never = sealReadToken(sealer, { room, reader: stranger.id, key: stranger.publicKey, expires: now() + 600 })
    const forged = `${good.slice(0, -1)}${good.endsWith('A') ? 'B' : 'A'}`
    const { cursor } = (await client.get('/api/updates')).data as unknown as { cursor: string }
    for (const [path, field, why] of [
      [`/tail/${room}`, 'room', 'which members get from a signed room.read_token'],
      [`/tail/${room}?token=`, 'token', 'this board issued no such token'],
      [`/tail/${room}?token=${forged}`, 'token', 'this board issued no such token'],
      [`/tail/${room}?token=${cursor}`, 'token', 'this board issued no such token'],
      [`/tail/${room}?token=${late}`, 'token', 'this token is expired'],
      [`/tail/${room}?token=${never}`, 'token', 'no longer a member of the room'],
      [`/tail/${other}?token=${good}`, 'token', 'this token is for another room'],
    ] as const) {
      const answer = await client.get(path)
      expect([path, answer]).toMatchObject([path, { status: 403, code: 'private_room', field }])
      expect(answer.text).toContain(why)
    }
    for (const path of ['/tail/no-such-room', `/tail/no-such-room?token=${good}`])
      expect(await client.get(path)).toMatchObject({ status: 400, code: 'not_found', field: 'room' })
    // A public room ignores it.
    await client.post(member, { text: 'for all' })
    const open = new StreamReader(board.address, `/tail/lobby?token=${good}`)
    await open.until((all) => all.includes('for all'))
    open.close()
  })

  test('has tokens for members only, for private rooms, and for at most an hour', async () => {
    const room = await privateRoom()
    const ask = (fields: { readonly [field: string]: string | number }, by = member) =>
      client.command(by, { operation: 'room.read_token', ...fields })
    expect(await ask({ room }, stranger)).toMatchObject({ status: 403, code: 'private_room' })
    expect(await client.send(JSON.stringify({ operation: 'room.read_token', room }))).toMatchObject({
      status: 403,
      code: 'unsigned',
    })
    expect(await ask({ room: 'no-such-room' })).toMatchObject({ status: 400, code: 'not_found', field: 'room' })
    expect(await ask({ room: 'lobby' })).toMatchObject({ status: 400, code: 'wrong_state', field: 'room' })
    expect(await ask({ room, ttl: 3601 })).toMatchObject({ status: 400, code: 'invalid_field', field: 'ttl' })
    expect(await ask({})).toMatchObject({ status: 400, code: 'missing_field', field: 'room' })
    expect((await token(room, { ttl: 3600 })).expires_at - now()).toBeGreaterThan(3500)
    // A tail that waits is closed once its token expires; a stream that is open by then goes on.
    const openFor = async (ttl: number) => {
      const short = await token(room, { ttl })
      const reader = new StreamReader(board.address, short.tail)
      await reader.until((all) => all.includes('\n\n'))
      return { short, reader }
    }
    // If the token expired before the stream was open, retry with one that lasts longer.
    let { short, reader } = await openFor(1)
    for (let ttl = 4; reader.status === 403 && ttl < 3_600; ttl *= 4) ({ short, reader } = await openFor(ttl))
    while (now() < short.expires_at) await new Promise((resolve) => setTimeout(resolve, 50))
    expect((await client.get(short.tail)).text).toContain('this token is expired')
    const id = await post(room, 'still there')
    expect(await reader.until((all) => all.includes(id))).toContain(id)
    reader.close()
  })

  test('tells a removed member so and closes immediately, and the token no longer opens anything', async () => {
    const room = await privateRoom()
    const [mine, his] = [await token(room, {}, owner), await token(room)]
    const [staying, text, sse] = [
      new StreamReader(board.address, mine.tail),
      new StreamReader(board.address, his.tail),
      new StreamReader(board.address, his.tail, { accept: 'text/event-stream' }),
    ]
    const first = await post(room, 'before')
    for (const reader of [staying, text, sse]) await reader.until((all) => all.includes(first))
    expect((await client.command(owner, { operation: 'room.member.remove', room, target: member.id })).status).toBe(200)
    for (const reader of [text, sse]) await reader.until(() => false)
    expect(text.text).toMatch(/\n# you are no longer a member of this room: closed\n$/)
    expect(sse.text).toMatch(/\n: you are no longer a member of this room: closed\n\n$/)
    const second = await post(room, 'after')
    expect(await staying.until((all) => all.includes(second))).toContain(second)
    for (const reader of [text, sse]) expect(reader.text).not.toContain(second)
    expect(await client.get(his.tail)).toMatchObject({ status: 403, code: 'private_room', field: 'token' })
    staying.close()
  })

  test('ends when the key of its token is rotated, and is counted nowhere', async () => {
    const room = await privateRoom()
    const [mover, next] = [person(`mover ${engine}`), person(`moved ${engine}`)]
    await client.command(owner, { operation: 'room.member.add', room, target: mover.id })
    const first = await post(room, 'before')
    const { tail } = await token(room, {}, mover)
    const reader = new StreamReader(board.address, tail)
    await reader.until((all) => all.includes(first))
    const open = (await client.get('/api/stats')).data.stats!.streams_open
    const other = new StreamReader(board.address, tail)
    await other.until((all) => all.includes(first))
    expect((await client.get('/api/stats')).data.stats!.streams_open).toBe(open)
    expect(await rotated(client, mover, next)).toMatchObject({ status: 200 })
    expect(await client.get(tail)).toMatchObject({ status: 403, code: 'private_room', field: 'token' })
    for (const each of [reader, other]) {
      await each.until(() => false)
      expect(each.text).toMatch(/\n# your identity moved to another key: closed\. Get a token with the new key\n$/)
    }
    const again = new StreamReader(board.address, (await token(room, {}, next)).tail)
    await again.until((all) => all.includes(first))
    again.close()
  })

  test('reaches neither the public tail nor public followers', async () => {
    const room = await privateRoom()
    await client.post(owner, { room: 'open', text: 'all' })
    const { tail } = await token(room)
    const [inside, outside] = [new StreamReader(board.address, tail), new StreamReader(board.address, '/tail/open')]
    await outside.until((all) => blockIds(all).length > 0)
    const secret = await post(room, 'canary')
    await inside.until((all) => all.includes(secret))
    const seen = await post('open', 'seen')
    const text = await outside.until((all) => all.includes(seen))
    expect(text).not.toContain('canary')
    expect(text).not.toContain(secret)
    inside.close()
    outside.close()
  })
})
