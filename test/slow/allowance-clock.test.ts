/**
 * The free calls of a day, on a board whose clock the test sets: used calls stay used over restarts and a clock set back, and the day ends
 * exactly at midnight.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, person } from '../support/client.ts'
import { fakeClock, missingFakeClock } from '../support/fake-clock.ts'
import { callResultOf } from '../support/payer-board.ts'
import { respondJson, ToolServer } from '../support/tool-server.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const seconds = (utc: string) => Date.parse(`${utc}Z`) / 1_000
const hour = 3_600

describe.skipIf(skipWithout(missingFakeClock))(`the allowance of a day${skipNote(missingFakeClock)}`, () => {
  const caller = person('who has two calls a day')
  const directory = boardDirectory()
  const clockFile = join(boardDirectory(), 'clock')
  let machine: ToolServer
  let board: Board
  let client: Client
  let tool: string
  let now = 0

  /** The clock stops where it is set: `2027-01-05 23:00:00`, UTC. */
  const setClock = (utc: string): void => {
    now = seconds(utc)
    writeFileSync(clockFile, `${utc}\n`)
  }
  const start = async (): Promise<void> => {
    const env = {
      BROADSIDE_LOOPBACK: '1',
      LIMITS: '{"tool_calls_per_identity_per_day":2}',
      TZ: 'UTC',
      ...fakeClock(clockFile),
    }
    board = await startBoard({ directory, env })
    client = await Client.of(board)
  }
  const restart = async (signal: NodeJS.Signals): Promise<void> => {
    board.signal(signal)
    await board.ended
    client.close()
    await start()
  }
  const send = (signer: Signer, fields: { operation: string } & Record<string, string>): Promise<Answer> =>
    client.send(client.sign(signer, fields, { timestamp: now }).body)
  const call = (signer: Signer, target = tool) =>
    send(signer, { operation: 'tools.call', target, data: '{"schema":1,"query":{"text":"x"}}' })
  const left = async (signer: Signer) => callResultOf(await call(signer, 'broadside:hash')).allowance
  /** Nothing is left, and the answer says for how long: in the head, in the body, and as a time. */
  const expectUsedUp = async (wait: number): Promise<void> => {
    const sent = machine.requests.length
    const answer = await call(caller)
    expect([answer.status, answer.code]).toEqual([429, 'allowance_exhausted'])
    expect(Number(answer.headers['retry-after'])).toBe(wait)
    expect(await left(caller)).toMatchObject({ left: 0, of: 2, resets_at: now + wait })
    expect(machine.requests.length).toBe(sent)
  }

  beforeAll(async () => {
    machine = await ToolServer.open({ '/': (_sent, response) => respondJson(response, {}) })
    setClock('2027-01-05 23:00:00')
    await start()
    const listing = { schema: 1, name: 'Free', description: 'x', category: 'data', url: machine.url('/'), price: '0' }
    const made = await send(person('maker'), { operation: 'tools.publish', data: JSON.stringify(listing) })
    tool = (made.data as unknown as { tool: { id: string } }).tool.id
  })
  afterAll(() => {
    client.close()
    machine.close()
  })

  test('is used up for one identity, and the stated wait is correct', async () => {
    expect(callResultOf(await call(caller)).allowance).toMatchObject({
      left: 1,
      resets_at: seconds('2027-01-06 00:00:00'),
    })
    expect(callResultOf(await call(caller)).allowance).toMatchObject({ left: 0 })
    await expectUsedUp(hour)
    expect(callResultOf(await call(person('who has not called yet'))).allowance).toMatchObject({ left: 1 })
  })

  test('stays used up over a kill, and when the clock is set back, in the same run and over another', async () => {
    await restart('SIGKILL')
    await expectUsedUp(hour)
    setClock('2027-01-05 11:00:00')
    await expectUsedUp(13 * hour)
    setClock('2027-01-04 12:00:00')
    await expectUsedUp(36 * hour)
    await restart('SIGKILL')
    await expectUsedUp(36 * hour)
  })

  test('is used up until the last second of the day, and full in the first of the next', async () => {
    setClock('2027-01-05 23:59:59')
    await expectUsedUp(1)
    setClock('2027-01-06 00:00:00')
    expect(await left(caller)).toMatchObject({ left: 2, resets_at: seconds('2027-01-07 00:00:00') })
    expect(callResultOf(await call(caller)).allowance).toMatchObject({ left: 1 })
  })

  test('is not granted a second time when the clock goes back over midnight and passes it again', async () => {
    setClock('2027-01-05 22:00:00')
    expect(callResultOf(await call(caller)).allowance).toMatchObject({ left: 0 })
    await expectUsedUp(26 * hour)
    await restart('SIGTERM')
    await expectUsedUp(26 * hour)
    setClock('2027-01-06 00:00:01')
    await expectUsedUp(24 * hour - 1)
    setClock('2027-01-07 00:00:00')
    expect(callResultOf(await call(caller)).allowance).toMatchObject({ left: 1 })
  })
})
