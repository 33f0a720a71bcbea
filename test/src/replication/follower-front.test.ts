/** What a follower says of its leader, and how many commands it forwards at once. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import type { Reply } from '../../../src/format/reply.ts'
import { Notices } from '../../../src/notices.ts'
import { FollowerFront } from '../../../src/replication/follower-front.ts'
import { Leader, OutOfReach } from '../../../src/replication/leader.ts'

const addresses = ['https://one.example', 'https://two.example', 'https://three.example']
const news = { delegates: { renew: () => {} }, grants: { refresh: () => {} } } as never
const command = {} as never
const door = { via: 'http', address: '192.0.2.1' }

/** The next box to answer as the leader; undefined: none does. */
function frontOf(leads: () => string | undefined) {
  const leader = new Leader(addresses, '', async (address) => {
    if (address !== leads()) throw new OutOfReach(`${address} is out of reach`, address)
    return { status: 200, bytes: Buffer.from(JSON.stringify({ status: 200, body: '{}' })) }
  })
  const front = new FollowerFront({ clock: systemClock, leader, notices: new Notices(), news })
  const pass = () => new Promise<Reply | undefined>((resolve) => front.forward(command, door, resolve))
  return { front, pass }
}

test('no box is named as the leader before one has answered as such, and then the latest that did', async () => {
  let leads: string | undefined
  const { front, pass } = frontOf(() => leads)
  const named = async () => {
    const reply = await pass()
    const { error } = JSON.parse(String(reply!.body)) as { readonly error: { readonly details?: unknown } }
    return [reply!.status, error.details]
  }
  for (let n = 0; n < 4; n++) expect(await named()).toEqual([429, undefined])
  expect(front.refusal.message).not.toMatch(/https:/)
  expect(front.behind()).not.toHaveProperty('details')
  leads = addresses[1]!
  let reply = await pass()
  while (reply?.status !== 200) reply = await pass()
  leads = undefined
  for (let n = 0; n < 4; n++) expect(await named()).toEqual([429, { leader: addresses[1] }])
  expect(front.refusal.message).toContain(addresses[1])
})

test('a bounded number of commands is forwarded at once, and further ones are told to retry', async () => {
  const waiting: (() => void)[] = []
  const leader = new Leader(addresses, '', async () => {
    await new Promise<void>((resolve) => waiting.push(resolve))
    return { status: 200, bytes: Buffer.from(JSON.stringify({ status: 200, body: '{}' })) }
  })
  const front = new FollowerFront({ clock: systemClock, leader, notices: new Notices(), news })
  const replies: (number | undefined)[] = []
  for (let n = 0; n < 600; n++) front.forward(command, door, (reply) => replies.push(reply?.status))
  expect(replies).toEqual(Array.from({ length: 600 - waiting.length }, () => 429))
  expect(waiting.length).toBeGreaterThanOrEqual(256)
  for (const answer of waiting.splice(0)) answer()
  await expect.poll(() => replies.length).toBe(600)
  front.forward(command, door, (reply) => replies.push(reply?.status))
  waiting.pop()!()
  await expect.poll(() => replies.at(-1)).toBe(200)
})
