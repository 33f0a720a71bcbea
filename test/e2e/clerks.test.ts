/** Clerks, the threads that parse commands: every read shows a post as its clerk produced it, and a clerk that dies is replaced. */
import { setTimeout } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 120_000 })

const ada = person('ada')
const bob = person('bob')

test.each(['back', 'clerks'])('placed as %s, a post is answered with the event as reads show it', async (placement) => {
  const board = await startBoard({ directory: boardDirectory(), env: { PLACEMENT: placement } })
  const client = await Client.of(board)
  await client.command(bob, { operation: 'identity.register', handle: 'bob' })
  const root = await client.post(ada, { room: 'desk', text: 'root' })
  const source = { system: 'mbox', id: '<"1"@example.com>', author: 'née ☂' }
  const given = [
    { room: 'desk', text: 'plain' },
    { text: 'in the lobby' },
    { room: 'desk', page: 'letters', kind: 'request', text: 'line\n"quoted" \\ \u0001 \u2028 ☂ 🎈' },
    { room: 'desk', text: 'a reply', reply_to: root.data.event!.event_id },
    { text: 'a reply without a room', reply_to: root.data.event!.event_id },
    { room: 'desk', text: 'addressed', to: '@bob' },
    { room: 'desk', text: 'to an id', to: bob.id },
    { room: 'desk', text: 'for a while', ttl: 600 },
    { room: 'desk', text: '*marked*', data: '{"schema":1,"format":"markdown"}' },
    { room: 'desk', text: 'from elsewhere', data: JSON.stringify({ schema: 1, source }) },
    { room: 'desk', text: 'an edit', data: JSON.stringify({ schema: 1, supersedes: root.data.event!.event_id }) },
  ]
  for (const who of [ada, bob]) {
    for (const fields of given.slice(0, who === ada ? given.length : -1)) {
      const { status, data, text } = await client.post(who, fields)
      expect([status, fields.text, text.slice(0, 200)]).toEqual([200, fields.text, expect.anything()])
      const id = data.event!.event_id
      const { signed_payload, ...event } = (await client.get(`/api/events/${id}`)).data.event!
      expect(data.event).toEqual(event)
      expect(Object.keys(data.event!)).toEqual(Object.keys(event))
    }
  }
  client.close()
  expect((await board.stop()).code).toBe(0)
})

/** SIGUSR2 kills the youngest clerk, as running out of memory would. Killing one that is still starting would end the process. */
const assassin = `
import { isMainThread } from 'node:worker_threads'
if (isMainThread) {
  const workers = []
  process.on('worker', (worker) => workers.push(worker))
  process.on('SIGUSR2', () => workers.findLast(({ threadName }) => threadName?.startsWith('clerk-')).terminate())
}`

test('a clerk that dies is replaced: every answered post is stored, and no other request waits forever', async () => {
  const board = await startBoard({
    directory: boardDirectory(),
    env: {
      PLACEMENT: 'clerks',
      VERIFY_THREADS: '2',
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(assassin)}`,
    },
  })
  const client = await Client.of(board)
  const replaced = () =>
    board.lines.filter((line) => line.includes('"thread.restarted"') && line.includes('clerk-')).length
  const posted: string[] = []
  const codes = new Set<string>()
  let isOver = false
  const write = async (n: number): Promise<void> => {
    for (let at = 0; !isOver; at++) {
      const { body, eventId } = client.sign(person(`writer ${n}`), {
        operation: 'post',
        room: 'desk',
        text: `${n} ${at}`,
      })
      const { status, code } = await client.send(body)
      if (status === 200) posted.push(eventId)
      else {
        codes.add(`${status} ${code}`)
        await setTimeout(20)
      }
    }
  }
  const busy = Array.from({ length: 8 }, (_, n) => write(n))
  for (const deaths of [1, 2]) {
    const before = posted.length
    await vi.waitFor(() => expect(posted.length).toBeGreaterThan(before + 50), patience)
    board.signal('SIGUSR2')
    await vi.waitFor(() => expect(replaced()).toBe(deaths), patience)
  }
  const before = posted.length
  await vi.waitFor(() => expect(posted.length).toBeGreaterThan(before + 50), patience)
  isOver = true
  await Promise.all(busy)
  expect([...codes].filter((code) => !code.endsWith('overloaded'))).toEqual([])
  const seen = await Promise.all(posted.slice(-100).map((id) => client.get(`/api/events/${id}`)))
  expect(new Set(seen.map(({ status }) => status))).toEqual(new Set([200]))
  client.close()
  expect((await board.stop()).code).toBe(0)
})
