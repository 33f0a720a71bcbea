/** Signed commands of a private room are known to all who were in it: replayed by a former member, they reveal nothing new. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, now, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { patience } from '../support/patience.ts'

const [ada, ben, agent] = [person('ada who stays'), person('ben who is removed'), person('agent of ada')]
const operator = person('olga who operates')
/** Seconds for which a command is accepted. */
const window = 300

let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory(), env: { OPERATORS: operator.id } })
  client = await Client.of(board)
})
afterAll(async () => {
  client.close()
  await board.stop()
})

async function done(...asked: Parameters<Client['command']>) {
  const answer = await client.command(...asked)
  expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
  return answer.data as typeof answer.data & { doc?: { id: string } }
}

test('a former member who replays a post gets only its receipt', async () => {
  await done(ada, { operation: 'room.create', room: 'attic', visibility: 'private', members: [ben.id] })
  const timestamp = now() - window + 4
  const kept = client.sign(ada, { operation: 'post', room: 'attic', text: 'as it was' }, { timestamp })
  const first = await client.send(kept.body)
  expect(first.status).toBe(200)
  const hide = { operation: 'room.hide', event_id: kept.eventId, reason: 'for a moment' }
  const hidden = client.sign(ada, hide, { timestamp: now() - window + 4 })
  expect((await client.send(hidden.body)).status).toBe(200)
  await done(ada, { operation: 'room.restore', event_id: kept.eventId, reason: 'back' })
  await done(ada, { operation: 'room.member.remove', room: 'attic', target: ben.id })
  const data = JSON.stringify({ schema: 1, supersedes: kept.eventId })
  await done(ada, { operation: 'post', room: 'attic', text: 'what ben may not read', data })
  // A client that lost the first answer and retries soon gets what it could read.
  expect((await client.send(kept.body)).status).toBe(200)
  for (const { body, eventId } of [kept, hidden])
    await vi.waitFor(async () => {
      const again = await client.send(body)
      expect([again.status, again.data.receipt]).toEqual([
        200,
        expect.objectContaining({ event_id: eventId, duplicate: true }),
      ])
      expect(again.text).not.toContain('what ben may not read')
    }, patience)
})

test('a delegate without the read scope gets neither the text of a conflict nor what its write shows', async () => {
  await createDelegation(client, ada, agent, { scopes: ['board:post', 'board:moderate'] })
  const text = 'a secret line\n'
  const { doc } = await done(ada, {
    operation: 'docs.create',
    room: 'attic',
    text,
    data: '{"schema":1,"title":"Plan"}',
  })
  const write = (words: string) => ({
    ...{ operation: 'docs.write', target: doc!.id, text: words },
    data: '{"schema":1,"base_version":1}',
  })
  await done(ada, write('another secret line\n'))
  const conflict = await client.command(agent, write('of the delegate\n'))
  expect([conflict.status, conflict.code]).toEqual([400, 'conflict'])
  expect(conflict.text).not.toContain('secret line')
  expect((await client.command(ada, write('of ada herself\n'))).text).toContain('another secret line')
  const { event_id: post = '' } = (await done(ada, { operation: 'post', room: 'attic', text: 'a secret post' })) as {
    event_id?: string
  }
  const hide = await client.command(agent, { operation: 'room.hide', event_id: post, reason: 'x' })
  const restore = await client.command(agent, { operation: 'room.restore', event_id: post, reason: 'x' })
  expect([hide.status, restore.status]).toEqual([200, 200])
  expect(`${hide.text}${restore.text}`).not.toContain('a secret post')
})

test('an operator removed from a room gets the receipt of their redaction again', async () => {
  await done(ada, { operation: 'room.create', room: 'cellar', visibility: 'private', members: [operator.id] })
  const post = client.sign(operator, { operation: 'post', room: 'cellar', text: 'my password is 12345' })
  expect((await client.send(post.body)).status).toBe(200)
  const redaction = { operation: 'event.redact', event_id: post.eventId, reason: 'a password' }
  const kept = client.sign(operator, redaction)
  expect((await client.send(kept.body)).status).toBe(200)
  await done(ada, { operation: 'room.member.remove', room: 'cellar', target: operator.id })
  const again = await client.send(kept.body)
  const receipt = expect.objectContaining({ event_id: kept.eventId, duplicate: true })
  expect([again.status, again.data?.receipt]).toEqual([200, receipt])
  // A command that was never accepted is refused as before: nothing there can be read.
  expect((await client.command(operator, { ...redaction, reason: 'another' })).code).toBe('not_found')
})
