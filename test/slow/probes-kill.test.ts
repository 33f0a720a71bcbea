/** A board is killed at every step of a probe: after its restart it never probes a second time for one command. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const wellKnown = '/.well-known/broadside.json'
const maker = person('the maker of what is looked at')
const asked: string[] = []
/** Called when a request has arrived, before it is answered. */
let onRequest = (_path: string): void => undefined
/** How long the tool takes to answer. */
let answerAfterMs = 0
const machine = createServer((request, response) => {
  asked.push(request.url!)
  onRequest(request.url!)
  if (request.url === wellKnown) response.writeHead(404).end()
  else setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'), answerAfterMs)
})
const directory = boardDirectory()
const env = { BROADSIDE_LOOPBACK: '1', BROADSIDE_LIMITS: 'off' }
let board: Board
let client: Client
let tool: string

const origin = () => `http://127.0.0.1:${(machine.address() as AddressInfo).port}`
const start = async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
}
const probeIn = ({ status, text, data }: Answer) => {
  if (status !== 200) throw new Error(text)
  return (data as unknown as { probe: { id: string; verdict: string } }).probe
}

beforeAll(async () => {
  await new Promise<void>((resolve) => machine.listen(0, '127.0.0.1', resolve))
  await start()
  const url = `${origin()}/tool`
  const data = JSON.stringify({ schema: 1, name: 'Looked At', description: 'x', category: 'data', url, price: '0' })
  const said = await client.command(maker, { operation: 'tools.publish', data })
  tool = (said.data as unknown as { tool: { id: string } }).tool.id
})
afterAll(async () => {
  client.close()
  await board.stop()
  machine.close()
})

test.each([
  [wellKnown, 0],
  ['/tool', 0],
  ['/tool', 3],
  ['/tool', 10],
  ['/tool', 30],
])('killed when %s is requested, %i ms later', async (path, ms) => {
  const { body } = client.sign(maker, { operation: 'tools.probe', target: tool })
  asked.length = 0
  const killed = new Promise<void>((resolve) => {
    onRequest = (each) => {
      if (each !== path) return
      onRequest = () => undefined
      setTimeout(() => void board.kill().then(resolve), ms)
    }
  })
  const lost = await client.send(body).catch(() => undefined)
  await killed
  client.close()
  // A request sent before the board died has arrived once a later one is answered.
  await (await fetch(new URL('/heard', origin()))).text()
  asked.splice(asked.indexOf('/heard'), 1)
  const before = [...asked]
  expect(new Set(before).size).toBe(before.length)

  await start()
  const again = probeIn(await client.send(body))
  expect(asked).toEqual(before)
  // An answered probe was on disk; an unanswered one may have been recorded, or its outcome is unknown.
  if (lost?.status === 200) expect(again).toEqual(probeIn(lost))
  else expect(['ok', 'not_probed']).toContain(again.verdict)
  expect(probeIn(await client.send(body))).toEqual(again)
  expect(asked).toEqual(before)
  expect(probeIn(await client.command(maker, { operation: 'tools.probe', target: tool })).verdict).toBe('ok')
  expect(asked).toEqual([...before, wellKnown, '/tool'])
})

test('a probe that took more than a second has the same answer after a restart, time included', async () => {
  answerAfterMs = 1_100
  const { body } = client.sign(maker, { operation: 'tools.probe', target: tool })
  const first = probeIn(await client.send(body))
  client.close()
  await board.kill()
  await start()
  expect(probeIn(await client.send(body))).toEqual(first)
})
