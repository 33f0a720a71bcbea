/**
 * A drill for a stolen key of each kind, as in HOSTING.md: what the thief can do before, what they cannot do after, and what is still
 * proved. Every key is copied out of a real board, and used.
 */
import { createHash, randomBytes } from 'node:crypto'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { opensslSigner, type Signer } from '../../src/cli/sign.ts'
import { sealReadToken } from '../../src/follow/read-token.ts'
import { CursorSealer } from '../../src/format/cursor.ts'
import { formatCheckpoint, openCheckpoint } from '../../storage/checkpoint.ts'
import { leafHash } from '../../storage/merkle.ts'
import { parseVkey, signNote } from '../../storage/note.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import { missingPackage } from '../peers/npm-peers.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { X402Seller } from '../peers/x402-seller.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { accessToken } from '../support/access-token.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { callTool } from '../support/oauth-client.ts'
import { patience } from '../support/patience.ts'
import { callResultOf, keyFileOf, PayerBoard, payerAddress } from '../support/payer-board.ts'
import { ReceiverBoard } from '../support/receiver-board.ts'
import { WebhookBoard } from '../support/webhook-board.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const ada = person('ada')
const operator = person('operator')
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'broadside-drills-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const seedIn = (file: string): Buffer => Buffer.from(readFileSync(file, 'utf8').trim(), 'hex')

async function run(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const terminal = capturedTerminal()
  const code = await main(argv, terminal)
  return { code, ...terminal.said }
}

/** Everything public is exported and verified with one pinned key. */
async function proved(client: Client, vkey: string, name: string): Promise<void> {
  const file = join(folder, `${name}.jsonl`)
  expect(await run('export', '--url', client.address, '--out', file)).toMatchObject({ code: 0 })
  expect(await run('verify', file, '--vkey', vkey)).toMatchObject({ code: 0 })
}

const vkeyOf = async (client: Client): Promise<string> => (await client.get('/log/vkey')).text.trim()

describe('the identity key of the board', () => {
  let receivers: ReceiverBoard
  let thief: Signer
  beforeAll(async () => {
    receivers = await ReceiverBoard.open()
    thief = opensslSigner(seedIn(join(receivers.board.directory, 'keys', 'board.key')))
  })
  afterAll(() => receivers.client.close())

  test.each<Fields>([
    { operation: 'post', room: 'lobby', text: 'signed by the board' },
    { operation: 'identity.rotate', target: person('thief').publicKey, proof: 'A'.repeat(86) },
    {
      operation: 'delegation.create',
      target: person('thief').publicKey,
      ttl: 60,
      proof: 'A'.repeat(86),
      data: '{"schema":1,"scopes":["board:post"]}',
    },
    { operation: 'inbox.get' },
  ])('opens nothing from outside: $operation is refused at every interface', async (fields) => {
    expect(await receivers.client.command(thief, fields)).toMatchObject({
      status: 403,
      code: 'forbidden',
      field: 'public_key',
    })
    const { body } = receivers.client.sign(thief, fields)
    const many = await fetch(`${receivers.client.address}/v1/commands`, { method: 'POST', body: `${body}\n` })
    expect(await many.text()).toContain('"code":"forbidden"')
    const inUrl = await fetch(`${receivers.client.address}/c64/${Buffer.from(body).toString('base64url')}`)
    expect(await inUrl.text()).toContain('"code":"forbidden"')
  })

  test('the board itself continues to sign, and what it signed is proved', async () => {
    const made = await receivers.createReceiver(ada, { post: true }, { room: 'lobby' })
    expect((await receivers.deliver(made.url, '{"a":1}')).status).toBe(200)
    const boardPosts = async () =>
      (await receivers.client.get('/api/events?room=lobby')).data.events!.filter(({ author }) => author.id === thief.id)
    await vi.waitFor(async () => expect(await boardPosts()).toHaveLength(1), patience)
    await proved(receivers.client, await vkeyOf(receivers.client), 'board-key')
  })
})

describe('the key of the log', () => {
  let board: Board
  let client: Client
  let vkey: string
  let stolen: Buffer
  let forger: Server
  let forgerAddress: string
  /** What the thief serves, by path after the name of the log; everything else is the board's own. */
  const forged = new Map<string, Buffer>()
  const directory = boardDirectory()
  const start = async (): Promise<void> => {
    board = await startBoard({ directory, ...(board === undefined ? {} : { port: board.port }) })
    client = await Client.of(board)
  }

  beforeAll(async () => {
    await start()
    for (let n = 0; n < 3; n++) await client.post(ada, { room: 'logged', text: `post ${n}` })
    vkey = await vkeyOf(client)
    stolen = seedIn(join(directory, 'keys', 'log.key'))
    forger = createServer((request, response) => {
      const found = forged.get(request.url!)
      if (found !== undefined) return void response.end(found)
      void fetch(`${board.address}${request.url}`).then(async (answer) =>
        response.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer())),
      )
    })
    await new Promise<void>((done) => forger.listen(0, '127.0.0.1', done))
    forgerAddress = `http://127.0.0.1:${(forger.address() as AddressInfo).port}`
  })
  afterAll(() => {
    client.close()
    forger.close()
  })

  /** A history of the same size, with a different last entry, signed with the stolen key. */
  async function forge(): Promise<void> {
    const key = parseVkey(vkey)
    if (!key.ok) throw new Error(key.problem)
    const { name } = key.value
    const prefix = name.slice(name.indexOf('/'))
    const head = openCheckpoint(await (await fetch(`${board.address}${prefix}/checkpoint`)).text(), key.value)
    if (!head.ok) throw new Error(head.problem)
    const { size } = head.value
    const bundle = Buffer.from(
      await (await fetch(`${board.address}${prefix}/tile/entries/000.p/${size}`)).arrayBuffer(),
    )
    // The same length, so that the bundle keeps its form.
    const at = bundle.lastIndexOf('room logged')
    bundle.write('room forged', at)
    const hashes: Buffer[] = []
    for (let place = 0; place < bundle.length; place += 2 + bundle.readUInt16BE(place))
      hashes.push(leafHash(bundle.subarray(place + 2, place + 2 + bundle.readUInt16BE(place))))
    const node = (left: Buffer, right: Buffer) =>
      createHash('sha256')
        .update(Buffer.concat([Buffer.of(1), left, right]))
        .digest()
    const rootOf = (leaves: readonly Buffer[]): Buffer => {
      if (leaves.length === 1) return leaves[0]!
      const split = 2 ** Math.ceil(Math.log2(leaves.length) - 1)
      return node(rootOf(leaves.slice(0, split)), rootOf(leaves.slice(split)))
    }
    const { signer, vkey: own } = createNoteKey(name, stolen)
    expect(own).toBe(vkey)
    const note = signNote(formatCheckpoint({ origin: name, size, root: rootOf(hashes) }), signer)
    forged.set(`${prefix}/checkpoint`, Buffer.from(note))
    forged.set(`${prefix}/tile/0/000.p/${size}`, Buffer.concat(hashes))
    forged.set(`${prefix}/tile/entries/000.p/${size}`, bundle)
  }

  test('before: a second history convinces those who have seen nothing of the first, and no mirror', async () => {
    const known = join(folder, 'mirror')
    expect(await run('mirror', board.address, known, '--vkey', vkey)).toMatchObject({ code: 0 })
    await forge()
    expect(await run('mirror', forgerAddress, join(folder, 'deceived'), '--vkey', vkey)).toMatchObject({ code: 0 })
    const found = await run('mirror', forgerAddress, known, '--vkey', vkey)
    expect([found.code, found.err]).toEqual([3, expect.stringMatching(/contradict|another root|not the same|signed/)])
  })

  test('after the rotation the stolen key signs nothing that the new one covers, and all is proved', async () => {
    client.close()
    await board.stop()
    expect(await run('log', 'rotate', '--data', directory)).toMatchObject({ code: 0 })
    await start()
    const next = await vkeyOf(client)
    expect(next).not.toBe(vkey)
    await client.post(ada, { room: 'logged', text: 'after the rotation' })
    expect(await run('mirror', forgerAddress, join(folder, 'pinned'), '--vkey', next)).toMatchObject({ code: 0 })
    const pinned = readFileSync(join(folder, 'pinned', 'checkpoint'), 'utf8')
    expect(pinned.split('\n')[0]).toMatch(/b$/)
    // The end of the closed log is in the first entry of the new one: the forged history has another root.
    await proved(client, next, 'log-key-new')
    await proved(client, vkey, 'log-key-old')
    const known = join(folder, 'mirror')
    expect(await run('mirror', forgerAddress, known)).toMatchObject({ code: 3 })
    expect(await run('mirror', board.address, known)).toMatchObject({
      code: 4,
      out: expect.stringContaining('This log is closed'),
    })
  })
})

describe('the key of an operator', () => {
  let board: Board
  let client: Client
  const directory = boardDirectory()
  const deputy = person('deputy')
  const start = async (operators: string): Promise<void> => {
    client?.close()
    await board?.stop()
    board = await startBoard({ directory, env: { OPERATORS: operators } })
    client = await Client.of(board)
  }
  beforeAll(() => start(operator.id))
  afterAll(() => client.close())
  const suspend = (who: Signer, target: string) =>
    client.command(who, { operation: 'identity.suspend', target, reason: 'x' })
  const unsuspend = (who: Signer, target: string) =>
    client.command(who, { operation: 'identity.unsuspend', target, reason: 'x' })

  test('before: the thief suspends anyone', async () => {
    expect((await client.post(ada, { room: 'lobby', text: 'hello' })).status).toBe(200)
    expect((await suspend(operator, ada.id)).status).toBe(200)
    expect((await client.post(ada, { room: 'lobby', text: 'again' })).status).not.toBe(200)
  })

  test('the operator rotates first: the id and the rights stay, and the old key is refused', async () => {
    const file = join(folder, 'operator-new.json')
    const moved = await run('identity', 'rotate', file, '--key', keyFileOf(operator), '--url', board.address)
    expect(moved).toMatchObject({ code: 0, out: expect.stringContaining(`${operator.id} now has the key in ${file}.`) })
    expect(await unsuspend(operator, ada.id)).toMatchObject({ code: 'key_rotated' })
    const undone = await run('moderate', 'unsuspend', ada.id, '--key', file, '--url', board.address)
    expect(undone).toMatchObject({ code: 0 })
    expect((await client.post(ada, { room: 'lobby', text: 'back' })).status).toBe(200)
  })

  test('the thief rotated first: another operator is named, suspends that identity, and undoes its acts', async () => {
    await start(deputy.id)
    const thief = opensslSigner(
      Buffer.from(
        (JSON.parse(readFileSync(join(folder, 'operator-new.json'), 'utf8')) as { seed: string }).seed,
        'base64url',
      ),
    )
    expect(await suspend(thief, ada.id)).toMatchObject({ code: 'forbidden' })
    expect((await suspend(deputy, operator.id)).status).toBe(200)
    expect((await client.post(thief, { room: 'lobby', text: 'as before' })).status).not.toBe(200)
    await proved(client, await vkeyOf(client), 'operator')
  })
})

describe('secrets of webhooks and receive URLs', () => {
  test('a rotated webhook has a new secret: the thief’s signatures are rejected, and events continue', async () => {
    const hooked = await WebhookBoard.open()
    const old = await hooked.createWebhook(ada, '/hook')
    const forge = (): Record<string, string> => {
      const id = `evt_${randomBytes(8).toString('hex')}`
      return {
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
        'webhook-signature': new Webhook(old.secret).sign(id, new Date(), '{"forged":true}'),
      }
    }
    const believed = (secret: string): boolean => {
      try {
        new Webhook(secret).verify('{"forged":true}', forge())
        return true
      } catch {
        return false
      }
    }
    expect(believed(old.secret)).toBe(true)
    const rotated = await hooked.run(ada, { operation: 'webhook.rotate', target: old.id })
    const next = (rotated.data as unknown as { webhook: { secret: string } }).webhook
    expect(believed(next.secret)).toBe(false)
    hooked.target.secrets.set('/hook', next.secret)
    await hooked.post(ada, { room: 'lobby', text: 'after' })
    expect((await hooked.waitForDeliveries('/hook', 1))[0]).toMatchObject({ verified: true })
    await hooked.close()
  })

  test('a receive URL with a new secret accepts nothing at the old address, and keeps its items', async () => {
    const mail = await ReceiverBoard.open()
    const made = await mail.createReceiver(ada)
    expect((await mail.deliver(made.url, 'by the thief')).status).toBe(200)
    const { data } = await mail.client.command(ada, { operation: 'receiver.rotate', target: made.id })
    const next = (data as { receiver?: { url: string } }).receiver!
    expect((await mail.deliver(made.url, 'again')).status).toBe(400)
    expect((await mail.deliver(next.url, 'by the sender')).status).toBe(200)
    expect((await mail.itemsOf(ada, { target: made.id })).map(({ body }) => body)).toEqual(
      expect.arrayContaining(['by the thief', 'by the sender']),
    )
    mail.client.close()
  })
})

describe('the key that seals', () => {
  let hooked: WebhookBoard
  let stolen: Buffer
  const room = 'sealed-room'
  const keys = () => join(hooked.board.directory, 'keys')
  /** What the thief puts into the address of a private tail, in the name of its owner. */
  const forged = (): string => {
    const sealer = new CursorSealer(stolen)
    const token = { room, reader: ada.id, key: ada.publicKey, expires: Math.floor(Date.now() / 1000) + 600 }
    return `/tail/${room}?token=${sealReadToken(sealer, token)}`
  }
  const opens = async (): Promise<boolean> => {
    const response = await fetch(`${hooked.client.address}${forged()}`)
    await response.body?.cancel()
    return response.status === 200
  }

  beforeAll(async () => {
    hooked = await WebhookBoard.open()
    await hooked.client.command(ada, { operation: 'room.create', room, visibility: 'private' })
    stolen = seedIn(join(keys(), 'cursor.key'))
  })
  afterAll(() => hooked.close())

  test('before: the thief makes a read token, and follows a private room', async () => {
    expect(await opens()).toBe(true)
  })

  test('after broadside rekey it opens nothing, and webhooks continue with their secrets', async () => {
    await hooked.createWebhook(ada, '/sealed')
    await hooked.restart(async (old) => {
      await old.stop()
      expect(await run('rekey', '--data', old.directory)).toMatchObject({ code: 0 })
    })
    expect(seedIn(join(keys(), 'cursor.key')).equals(stolen)).toBe(false)
    expect(seedIn(join(keys(), 'cursor-1.key')).equals(stolen)).toBe(true)
    expect(await opens()).toBe(false)
    await hooked.post(ada, { room: 'lobby', text: 'after the new key' })
    expect((await hooked.waitForDeliveries('/sealed', 1))[0]).toMatchObject({ verified: true })
    await proved(hooked.client, await vkeyOf(hooked.client), 'cursor-key')
  })

  test('if the key is lost, the board starts with another, and what it cannot sign is not sent', async () => {
    await hooked.restart(async (old) => {
      await old.stop()
      for (const name of ['cursor.key', 'cursor-1.key']) rmSync(join(keys(), name))
      expect(await run('rekey', '--data', hooked.board.directory)).toMatchObject({
        code: 1,
        err: expect.stringContaining('cursor.key is missing'),
      })
      expect(await run('rekey', '--lost', '--data', hooked.board.directory)).toMatchObject({ code: 0 })
    })
    await hooked.createWebhook(ada, '/again')
    await hooked.post(ada, { room: 'lobby', text: 'after the lost key' })
    expect((await hooked.waitForDeliveries('/again', 1))[0]).toMatchObject({ verified: true })
    expect(await hooked.waitForDeliveries('/sealed', 1)).toHaveLength(1)
  })
})

describe('keys of sign-ins, and the key of access tokens', () => {
  test('without the files no token is valid; the keys themselves end with their delegations', async () => {
    const directory = boardDirectory()
    let board = await startBoard({ directory, env: { OPERATORS: operator.id } })
    const token = await accessToken(board.address, ada, 'board:read board:post')
    expect(await callTool(board.address, 'whoami', {}, token)).toMatchObject({ status: 200 })
    const keys = join(folder, 'sign-in.keys')
    copyFileSync(join(directory, 'sign-in.keys'), keys)
    const thief = opensslSigner(readFileSync(keys).subarray(20, 52))
    let client = await Client.of(board)
    expect((await client.post(thief, { room: 'lobby', text: 'as ada' })).status).toBe(200)
    client.close()
    await board.stop()
    rmSync(join(directory, 'sign-in.keys'))
    rmSync(join(directory, 'keys', 'oauth.key'))
    board = await startBoard({ directory, port: board.port, env: { OPERATORS: operator.id } })
    client = await Client.of(board)
    expect(await callTool(board.address, 'whoami', {}, token)).toMatchObject({ status: 401 })
    expect((await client.post(thief, { room: 'lobby', text: 'still as ada' })).status).toBe(200)
    // For an identity that does not respond the operator ends all delegations, with a momentary suspension.
    const by = ['--key', keyFileOf(operator), '--url', board.address]
    expect(await run('moderate', 'suspend', ada.id, 'stolen keys', ...by)).toMatchObject({ code: 0 })
    expect(await run('moderate', 'unsuspend', ada.id, ...by)).toMatchObject({ code: 0 })
    expect(await client.post(thief, { room: 'lobby', text: 'no more' })).toMatchObject({ code: 'forbidden' })
    expect((await client.post(ada, { room: 'lobby', text: 'by herself' })).status).toBe(200)
    await proved(client, await vkeyOf(client), 'sign-in')
    client.close()
  })
})

const missing = missingPackage('@x402/express') ?? missingPackage('@x402/evm')

describe.skipIf(skipWithout(missing))(`the key of the wallet${skipNote(missing)}`, () => {
  test('another key in its place pays from another address, and earlier payments stay proved', async () => {
    const [seller, payer] = await Promise.all([X402Seller.open(), PayerBoard.open()])
    const tool = await payer.tool(seller.url, { price: '0.0025', payees: [`0x${'11'.repeat(20)}`] })
    const before = callResultOf(await payer.call(person('before'), tool))
    expect(seller.settled.at(-1)!.from.toLowerCase()).toBe(payerAddress.toLowerCase())
    const next = join(folder, 'wallet-new.key')
    writeFileSync(next, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
    await payer.restart((board) => board.stop(), { WALLET_KEY_FILE: next })
    const after = callResultOf(await payer.call(person('after'), tool))
    expect([before.status, after.status]).toEqual([200, 200])
    // Whatever the thief spends from the old wallet is no longer the board's: its payments come from elsewhere.
    expect(seller.settled).toHaveLength(2)
    expect(seller.settled.at(-1)!.from.toLowerCase()).not.toBe(payerAddress.toLowerCase())
    await proved(payer.client, await vkeyOf(payer.client), 'wallet')
    seller.close()
    payer.client.close()
  })
})
