import { spawnSync } from 'node:child_process'
import { rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000 })

const ada = person('ada')
const missing = missingProgram('mount') ?? (process.getuid?.() === 0 ? undefined : 'mounting a small disk needs root')

/** The health check of a board whose disk has less room than its reserve. */
const fullDisk =
  /^ok\ndisk: the disk of the data directory has less than DISK_RESERVE_BYTES \(\d+ bytes\) left, so writes are refused: free space on it\n$/

describe.skipIf(skipWithout(missing))(`on a disk of 12 MiB${skipNote(missing)}`, () => {
  const mount = boardDirectory()
  /** Leaves about this much room; with 0, until nothing more fits. */
  const fill = (leaveBytes: number) => {
    const { bavail, bsize } = statfsSync(mount)
    const blocks = leaveBytes === 0 ? 1_000_000 : Math.floor((bavail * bsize - leaveBytes) / 4096)
    spawnSync('dd', ['if=/dev/zero', `of=${join(mount, 'filler')}`, 'bs=4k', `count=${blocks}`])
  }

  beforeAll(() => {
    const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', mount], {
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`a small disk cannot be mounted: ${stderr}`)
  })
  afterAll(() => {
    spawnSync('umount', ['-l', mount])
  })

  test.each([
    ['room below its reserve of 4 MiB', '4194304'],
    ['no room and no reserve at all', '0'],
  ])('with %s: full, writes are refused and reads continue; with room again, writes work', async (_name, reserve) => {
    const directory = join(mount, `board-${reserve}`)
    const env = { DISK_RESERVE_BYTES: reserve, SEGMENT_BYTES: '65536' }
    let board = await startBoard({ directory, env })
    let client = await Client.of(board)
    const key = await logKeyOf(client)
    const ledger = new Ledger(new Heads(key), key)
    const random = randomFrom(3)
    await load({ client, ledger, random, posts: 100, inFlight: 4, rooms: ['a'] })
    fill(reserve === '0' ? 0 : 3 * 1024 * 1024)
    let refused = 0
    // The board checks the disk twice a second, so the first few may still pass; without a reserve it may have to stop.
    for (let n = 0; n < 400 && refused < 20; n += 1) {
      const signed = client.sign(ada, { operation: 'post', room: 'a', text: `${n} ${'full '.repeat(600)}` })
      const text = (JSON.parse(signed.body) as { text: string }).text
      ledger.unknown.set(signed.eventId, { signed, text })
      const answer = await client.send(signed.body).catch(() => undefined)
      if (answer === undefined) {
        expect(reserve, 'a connection was cut though there is a reserve').toBe('0')
        if (board.child.exitCode !== null) break
        await sleep(25)
        continue
      }
      ledger.unknown.delete(signed.eventId)
      ledger.record(signed, answer)
      if (answer.status === 200) {
        // However fast the machine, the board has checked before the disk is really full.
        await sleep(5)
        continue
      }
      // A shard stopped by the full disk is up again a moment before it knows which keys act for whom.
      if (reserve === '0' && answer.code === 'overloaded') continue
      expect(answer).toMatchObject({ status: 429, code: 'storage_full' })
      expect(answer.headers['retry-after']).toMatch(/^[1-9][0-9]*$/)
      refused += 1
    }
    if (board.child.exitCode !== null) {
      expect([reserve, board.child.exitCode]).toEqual(['0', 70])
    } else {
      if (reserve !== '0') {
        expect(refused).toBe(20)
        const health = async () => (await client.get('/healthz')).text
        await vi.waitFor(async () => expect(await health()).toMatch(fullDisk), patience)
        expect((await client.get('/metrics')).text).toContain('broadside_notice{name="disk"} 1\n')
      }
      for (const path of ['/api/events?room=a', '/api/rooms', '/api/log/checkpoint', '/healthz']) {
        expect((await client.get(path)).status).toBe(200)
      }
      await ledger.check(client, 20)
    }
    rmSync(join(mount, 'filler'))
    if (board.child.exitCode !== null) {
      client.close()
      board = await startBoard({ directory, env })
      client = await Client.of(board)
    }
    await vi.waitUntil(async () => (await client.post(ada, { room: 'b', text: 'room again' })).status === 200, patience)
    await vi.waitUntil(async () => (await client.get('/healthz')).text === 'ok\n', patience)
    client.close()
    await board.stop()
    const again = await startBoard({ directory, env })
    const later = await Client.of(again)
    for (const { event_id, text } of (await later.get('/api/events?room=b')).data.events!)
      ledger.unknown.set(event_id, { signed: { body: '', eventId: event_id, sha256: '' }, text: text! })
    await ledger.check(later, 1_000)
    later.close()
    await again.stop()
    rmSync(directory, { recursive: true })
  })

  test('a search without room loses only its index, and is back when there is room', async () => {
    rmSync(join(mount, 'filler'), { force: true })
    const directory = join(mount, 'board-searched')
    const board = await startBoard({ directory, env: { SHARDS: '1', DISK_RESERVE_BYTES: '262144' } })
    const client = await Client.of(board)
    const search = () => client.get('/api/events?query=words')
    const post = (text: string) => client.command(ada, { operation: 'post', room: 'a', text })
    expect((await post('words')).status).toBe(200)
    expect((await search()).status).toBe(200)
    const many = Array.from({ length: 2_000 }, (_, n) => `w${n}x${n * 7_919}`).join(' ')
    for (let n = 0; n < 20; n += 1) expect((await post(`words ${n} ${many}`)).status).toBe(200)
    fill(0)
    // What was in the index before is found.
    for (let n = 0; n < 8; n += 1) expect([undefined, 'overloaded']).toContain((await search()).code)
    expect((await client.get('/api/rooms')).status).toBe(200)
    rmSync(join(mount, 'filler'))
    await vi.waitFor(async () => expect((await search()).status).toBe(200), patience)
    await board.stop()
  })
})
