import { rmSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { Board, boardDirectory, startBoard, tryBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { Heads, logKeyOf } from '../support/judge.ts'
import { chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'

vi.setConfig({ testTimeout: 300_000 })

const missing = missingProgram('strace')
const env = { SEGMENT_BYTES: '65536' }

/** Runs a board under strace with a fault: `inject` in strace's own words. */
function under(inject: string, calls: string): string[] {
  return ['strace', '-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${inject}`]
}

/** A board that has its directory, its key and a first post, stopped. */
async function madeBoard(directory: string): Promise<Ledger> {
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  const key = await logKeyOf(client)
  const ledger = new Ledger(new Heads(key), key)
  await load({ client, ledger, random: randomFrom(1), posts: 5, inFlight: 1, rooms: ['a'] })
  client.close()
  await board.stop()
  return ledger
}

/** Starts the board as it should be and holds it to its ledger. */
async function checkAfter(directory: string, ledger: Ledger): Promise<void> {
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  await ledger.check(client, 10)
  client.close()
  await board.kill()
}

describe.skipIf(skipWithout(missing))(`with failing system calls${skipNote(missing)}`, () => {
  test.each([
    ['fdatasync', [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18, 22, 27, 33, 41, 50, 63, 80, 100]],
    ['fsync', [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]],
    ['rename', [1, 2, 3, 4, 5]],
  ] as const)('killed at any of its %s calls the board keeps what it acknowledged', async (call, numbers) => {
    const seed = chooseSeed(`killed at ${call}`)
    const directory = boardDirectory()
    const ledger = await madeBoard(directory)
    let fired = 0
    for (const when of numbers) {
      const inject = `${call}:signal=KILL:when=${when}`
      const found = await tryBoard({ directory, env, under: under(inject, call) })
      if (!(found instanceof Board)) {
        fired += 1 // killed while it started
        continue
      }
      const client = await Client.of(found)
      const random = randomFrom(seed + when)
      const options = { client, ledger, random, posts: 150, inFlight: 4, rooms: ['a', 'b'], textBytesMax: 3_000 }
      await load(options)
      // Fewer calls than that: its end makes a few more.
      if (found.child.exitCode === null && found.child.signalCode === null) found.signal('SIGTERM')
      const { signal } = await found.ended
      if (signal === 'SIGKILL') fired += 1
      client.close()
    }
    console.info(`${call}: ${fired} of ${numbers.length} kills hit, ${ledger.acknowledged.size} acknowledged`)
    expect(fired).toBeGreaterThan(0)
    await checkAfter(directory, ledger)
  })

  test('killed at any call while it is made, a board is made anew or as it was, never half', async () => {
    for (const when of [1, 2, 3, 5, 8, 11]) {
      const directory = boardDirectory()
      for (const call of ['fsync', 'fdatasync', 'rename']) {
        const found = await tryBoard({ directory, env, under: under(`${call}:signal=KILL:when=${when}`, call) })
        if (found instanceof Board) await found.kill()
      }
      const board = await startBoard({ directory, env })
      const client = await Client.of(board)
      const key = await logKeyOf(client)
      const ledger = new Ledger(new Heads(key), key)
      await load({ client, ledger, random: randomFrom(when), posts: 3, inFlight: 1, rooms: ['a'] })
      await ledger.check(client, 3)
      client.close()
      await board.kill()
      rmSync(directory, { recursive: true })
    }
  })

  test.each([3, 4, 7])(
    'after a failed sync (EIO at number %i) the process ends with an error and acknowledges nothing more',
    async (when) => {
      const directory = boardDirectory()
      const ledger = await madeBoard(directory)
      const found = await tryBoard({ directory, env, under: under(`fdatasync:error=EIO:when=${when}`, 'fdatasync') })
      if (found instanceof Board) {
        const client = await Client.of(found)
        await load({ client, ledger, random: randomFrom(when), posts: 200, inFlight: 4, rooms: ['a', 'b'] })
        const { code } = await found.ended
        expect(code).not.toBe(0)
        client.close()
        expect(found.lines.join('\n')).toContain('"fatal"')
      } else expect(found.code).not.toBe(0)
      await checkAfter(directory, ledger)
    },
  )

  test.each([2, 4, 7])(
    'when the disk is full in the middle of a write (ENOSPC from number %i on) nothing is acknowledged that is not there',
    async (when) => {
      const directory = boardDirectory()
      const ledger = await madeBoard(directory)
      const inject = `pwrite64,write:error=ENOSPC:when=${when}..${when + 3}`
      const found = await tryBoard({
        directory,
        env,
        under: under(inject.replace('pwrite64,write', 'pwrite64'), 'pwrite64'),
      })
      if (found instanceof Board) {
        const client = await Client.of(found)
        await load({ client, ledger, random: randomFrom(when), posts: 100, inFlight: 4, rooms: ['a', 'b'] })
        client.close()
        found.signal('SIGTERM')
        await found.ended
      }
      expect([...ledger.refused.keys()].filter((name) => name !== '429 storage_full')).toEqual([])
      await checkAfter(directory, ledger)
    },
  )
})
