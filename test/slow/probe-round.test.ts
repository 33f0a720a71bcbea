/** The board probes tools on its own, once a day for every host that allows it, over passing days, restarts, kills and a clock that is set back. */
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, person } from '../support/client.ts'
import { fakeClock, missingFakeClock } from '../support/fake-clock.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const wellKnown = '/.well-known/broadside.json'
const until = patience

describe.skipIf(skipWithout(missingFakeClock))(`the daily round of the lab${skipNote(missingFakeClock)}`, () => {
  const maker = person('the maker of what is looked at')
  const stranger = person('who lists what is not his')
  const directory = boardDirectory()
  const clockFile = join(boardDirectory(), 'clock')
  /** Paths that were requested, preceded by the machine: `one/a`. */
  const asked: string[] = []
  const says = { one: { owners: [maker.id] }, two: { owners: [maker.id], opt_out: false } }
  /** Called when a request has arrived, before it is answered. */
  let onRequest = (_path: string): unknown => undefined
  const machines: Record<string, Server> = {}
  const tools: Record<string, string> = {}
  let board: Board
  let client: Client
  let now = 0

  /** The last second of a day, in which everything of that day is due; the clock stands still. */
  const setDay = (day: number): void => {
    now = Date.UTC(2027, 0, day, 23, 59, 59) / 1_000
    writeFileSync(clockFile, `2027-01-${String(day).padStart(2, '0')} 23:59:59\n`)
  }
  const start = async (): Promise<void> => {
    const env = {
      BROADSIDE_LOOPBACK: '1',
      TZ: 'UTC',
      ...fakeClock(clockFile),
    }
    board = await startBoard({ directory, env })
    client = await Client.of(board)
  }
  const dataOf = <Data>(answer: Answer): Data => {
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.data as unknown as Data
  }
  const command = (signer: Signer, fields: { operation: string } & Record<string, string>) =>
    client.send(client.sign(signer, fields, { timestamp: now }).body)
  /** `name`: machine and path, such as `one/a`. The second machine has another name: a host is a name. */
  const publish = async (signer: Signer, name: string): Promise<string> => {
    const [machine, path] = name.split('/') as [string, string]
    const { port } = machines[machine]!.address() as AddressInfo
    const url = `http://${machine === 'one' ? '127.0.0.1' : 'localhost'}:${port}/${path}`
    const data = JSON.stringify({
      schema: 1,
      name: `Tool ${path}`,
      description: 'x',
      category: 'data',
      url,
      price: '0',
    })
    const { tool } = dataOf<{ tool: { id: string } }>(await command(signer, { operation: 'tools.publish', data }))
    tools[name] = tool.id
    return tool.id
  }
  const probe = async (name: string) => dataOf(await command(maker, { operation: 'tools.probe', target: tools[name]! }))
  const stateOf = async (name: string) =>
    dataOf<{ tool: { state: string }; index: { listed: boolean } }>(await client.get(`/api/tool?id=${tools[name]}`))
  const count = (name: string) => asked.filter((each) => each === name).length
  /** Probes are made in the order of their due times: this one is the newest, so all before it had their turn. */
  const roundHasPassed = async (name: string): Promise<void> => {
    await publish(maker, name)
    await vi.waitUntil(() => count(name) > 0, until)
  }

  beforeAll(async () => {
    for (const name of ['one', 'two'] as const) {
      const machine = createServer(async (request, response) => {
        asked.push(`${name}${request.url}`)
        await onRequest(`${name}${request.url}`)
        const body = request.url === wellKnown ? says[name] : {}
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      })
      await new Promise<void>((ready) => machine.listen(0, name === 'one' ? '127.0.0.1' : 'localhost', ready))
      machines[name] = machine
    }
    setDay(5)
    await start()
    await publish(maker, 'one/a')
    await publish(stranger, 'one/c')
    await publish(maker, 'two/d')
  })
  afterAll(() => {
    client.close()
    for (const machine of Object.values(machines)) machine.close()
  })

  test('begins when a host has named the owner, probes once, and skips what a stranger has listed', async () => {
    await probe('one/a')
    await probe('two/d')
    await vi.waitUntil(() => count('one/a') === 2 && count('two/d') === 2, until)
    await roundHasPassed('one/b')
    expect([count('one/a'), count('one/c'), count('two/d')]).toEqual([2, 0, 2])
    expect(await stateOf('one/a')).toMatchObject({ tool: { state: 'up' } })
  })

  test('probes nothing twice on the same day after a restart', async () => {
    const before = count('one/a')
    await board.stop()
    client.close()
    await start()
    await roundHasPassed('one/anew')
    expect([count('one/a'), count('one/b')]).toEqual([before, 1])
  })

  test('probes again on the next day, so that nothing goes stale; a host that opts out is left alone from then on', async () => {
    says.two.opt_out = true
    asked.length = 0
    setDay(6)
    await vi.waitUntil(() => count('one/a') === 1 && count('one/b') === 1 && count(`two${wellKnown}`) === 1, until)
    await vi.waitUntil(async () => !(await stateOf('two/d')).index.listed, until)
    expect(count('two/d')).toBe(0)
    asked.length = 0
    setDay(20)
    await vi.waitUntil(() => count('one/a') === 1 && count('one/b') === 1, until)
    await vi.waitUntil(async () => (await stateOf('one/a')).tool.state === 'up', until)
    expect(asked.filter((each) => each.startsWith('two') || each === 'one/c')).toEqual([])
  })

  test('repeats no probe when the clock is set back to an earlier day', async () => {
    const before = count('one/a')
    setDay(6)
    await roundHasPassed('one/in-the-past')
    expect(count('one/a')).toBe(before)
  })

  test('killed before it has seen anything, probes again on the next day, and not before', async () => {
    const killed = new Promise<void>((resolve) => {
      onRequest = (path) => {
        if (path !== `one${wellKnown}`) return undefined
        onRequest = () => undefined
        return board.kill().then(resolve)
      }
    })
    asked.length = 0
    setDay(21)
    await killed
    client.close()
    await start()
    const all = Object.keys(tools).filter((name) => name.startsWith('one') && name !== 'one/c')
    // One of them was in progress, nobody outside knows which; the others follow.
    await vi.waitUntil(() => all.filter((name) => count(name) === 1).length === all.length - 1, until)
    await roundHasPassed('one/late')
    expect(all.map(count).toSorted()).toEqual([0, ...all.slice(1).map(() => 1)])
  })

  test('reports a host that is down', async () => {
    await new Promise<void>((resolve) => {
      machines.one!.close(() => resolve())
      machines.one!.closeAllConnections()
    })
    setDay(22)
    await vi.waitUntil(async () => (await stateOf('one/a')).tool.state === 'down', until)
  })
})
