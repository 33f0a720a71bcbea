import { spawnSync } from 'node:child_process'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { Heads, logKeyOf } from '../support/judge.ts'
import { chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'

vi.setConfig({ testTimeout: 900_000 })

const programs = ['losetup', 'xfs_io', 'mkfs.ext4', 'mount'].map(missingProgram).find((each) => each !== undefined)
const missing = programs ?? (process.getuid?.() === 0 ? undefined : 'a loop device needs root')

function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error ?? stderr}`)
  return stdout.trim()
}

describe.skipIf(skipWithout(missing))(`on a disk whose power is cut${skipNote(missing)}`, () => {
  const folder = boardDirectory()
  const mount = join(folder, 'mount')
  let device = ''

  afterAll(() => {
    spawnSync('umount', ['-l', mount])
    if (device !== '') spawnSync('losetup', ['-d', device])
  })

  test('at any moment, also right after a new segment began, everything acknowledged is there and proves', async () => {
    const image = join(folder, 'disk.img')
    writeFileSync(image, '')
    truncateSync(image, 192 * 1024 * 1024)
    run('mkfs.ext4', '-q', '-F', image)
    run('mkdir', '-p', mount)
    device = run('losetup', '-f', '--show', image)
    const directory = join(mount, 'board')
    const env = { SEGMENT_BYTES: '65536', DISK_RESERVE_BYTES: '0' }
    const random = randomFrom(chooseSeed('power cuts'))
    let ledger: Ledger | undefined
    const rounds = 6
    for (let round = 0; round < rounds; round += 1) {
      run('mount', device, mount)
      const board = await startBoard({ directory, env })
      const client = await Client.of(board)
      const key = await logKeyOf(client)
      ledger ??= new Ledger(new Heads(key), key)
      await ledger.check(client, 100)
      const cut = () => run('xfs_io', '-x', '-c', 'shutdown', mount)
      let isCut = false
      const cutOnce = () => {
        if (isCut) return
        isCut = true
        cut()
        board.signal('SIGKILL')
      }
      // Every other round waits for the line that tells of a roll, and cuts then.
      const atRoll = round % 2 === 1
      const end = 40 + random(120)
      const onAcknowledged = (count: number) => {
        if (!atRoll && count === end) setTimeout(cutOnce, random(6))
        if (atRoll && board.lines.some((line) => line.includes('segment-sealed'))) cutOnce()
      }
      await load({ client, ledger, random, posts: 1_500, inFlight: 8, rooms: ['a', 'b'], onAcknowledged })
      expect(isCut).toBe(true)
      await board.ended
      client.close()
      run('umount', mount)
    }
    run('mount', device, mount)
    const board = await startBoard({ directory, env })
    const client = await Client.of(board)
    const events = await ledger!.check(client, 100_000)
    console.info(`${rounds} power cuts: ${ledger!.acknowledged.size} acknowledged, ${events.length} there`)
    client.close()
    await board.stop()
    run('umount', mount)
  })
})
