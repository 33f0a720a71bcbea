/** A clock that jumps takes no effect on works before the operator has said that it is right. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, now, person } from '../support/client.ts'
import { acceptClock, fakeClock, missingFakeClock } from '../support/fake-clock.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 300_000 })

const day = 86_400

describe.skipIf(skipWithout(missingFakeClock))(`on a machine whose clock jumps${skipNote(missingFakeClock)}`, () => {
  test.each(['1', '2'])(
    'with %s shards: time-outs wait, it is reported, and broadside clock accept goes on',
    async (shards) => {
      const directory = boardDirectory()
      const clockFile = join(boardDirectory(), 'offset')
      const jumpTo = (seconds: number) => writeFileSync(clockFile, `+${seconds}\n`)
      const [op, ada] = [person('op'), person('ada')]
      jumpTo(0)
      const env = { OPERATORS: op.id, SHARDS: shards, ...fakeClock(clockFile) }
      const board = await startBoard({ directory, env })
      const client = await Client.of(board)
      await client.command(op, { operation: 'credit.grant', target: ada.id, amount: 100 })
      const data = JSON.stringify({ schema: 1, title: 'A thing to do' })
      const made = await client.command(ada, {
        operation: 'work.create',
        room: 'hall',
        text: 'do this',
        amount: 10,
        data,
      })
      expect([made.status, made.text]).toEqual([200, expect.any(String)])
      const { id } = (made.data as unknown as { work: { id: string } }).work
      const state = async () => {
        const { status, data: found } = await client.get(`/api/work/${id}`)
        expect(status).toBe(200)
        return (found as unknown as { work: { state: string } }).work.state
      }
      const claim = { operation: 'work.claim', event_id: id, ttl: 7_200, data: '{"schema":1}' }
      const claimed = await client.command(person('ben'), claim)
      expect([claimed.status, claimed.text]).toEqual([200, expect.any(String)])
      expect(await state()).toBe('claimed')
      jumpTo(day)
      await vi.waitUntil(() => board.lines.some((line) => line.includes('"clock.jumped"')), patience)
      expect((await client.get('/healthz')).text).toMatch(
        /^ok\nclock: the clock has jumped 1440 minutes ahead, .*broadside clock accept\n$/,
      )
      expect((await client.get('/metrics')).text).toContain('broadside_notice{name="clock"} 1\n')
      // A write of the market at the new time: nothing takes effect with it.
      const grant = { operation: 'credit.grant', target: ada.id, amount: 1 }
      expect((await client.command(op, grant, { timestamp: now() + day })).status).toBe(200)
      expect(await state()).toBe('claimed')
      await acceptClock(directory, day)
      await vi.waitUntil(async () => (await state()) !== 'claimed', patience)
      await vi.waitUntil(async () => (await client.get('/healthz')).text === 'ok\n', patience)
      expect(board.lines.some((line) => line.includes('"clock.jump_over"'))).toBe(true)
      client.close()
      expect((await board.stop()).code).toBe(0)
    },
  )
})
