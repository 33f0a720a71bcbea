/** Which refreshes are answered again, and for how long. */
import { expect, test } from 'vitest'
import { RepeatedRefreshes } from '../../../src/sign-in/repeated-refreshes.ts'

const body = Buffer.from('grant_type=refresh_token&refresh_token=one')

/** Each refresh that is made gets the next status and number. */
function refreshes(...statuses: readonly number[]) {
  const clock = { ms: 0 }
  const repeated = new RepeatedRefreshes<{ status: number; number: number }>(() => clock.ms)
  let made = 0
  const ask = (asked = body) => repeated.answer(asked, async () => ({ status: statuses[made] ?? 200, number: ++made }))
  return { clock, ask }
}

test('the same refresh has the same answer for half a minute', async () => {
  const { clock, ask } = refreshes()
  const atOnce = await Promise.all([ask(), ask()])
  clock.ms = 29_999
  for (const each of [...atOnce, await ask()]) expect(each.number).toBe(1)
  clock.ms = 30_000
  expect((await ask()).number).toBe(2)
})

test('other bytes are another refresh', async () => {
  const { ask } = refreshes()
  await ask()
  expect((await ask(Buffer.concat([body, Buffer.from('&scope=board:read')]))).number).toBe(2)
})

test('a refused refresh is made again, as with rate_limited', async () => {
  const { ask } = refreshes(429)
  expect((await ask()).status).toBe(429)
  expect(await ask()).toEqual({ status: 200, number: 2 })
})
