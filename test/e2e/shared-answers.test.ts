/** Concurrent requests for one address share one answer. Counted, on both engines. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startServer } from '../../src/board/server.ts'
import { readConfig } from '../../src/config.ts'
import { machine } from '../../src/platform.ts'
import { boardDirectory } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const readers = 64

describe.each(['uws', 'node'] as const)('a board on %s', (engine) => {
  /** Requests for a thread that the main thread sent to others. */
  let asked = 0
  let server: Awaited<ReturnType<typeof startServer>>
  let client: Client

  beforeAll(async () => {
    const channel = () => {
      const { port1, port2 } = machine.channel()
      const send = port1.postMessage.bind(port1)
      port1.postMessage = (bytes, transfer) => {
        asked += Buffer.from(bytes).toString('latin1').split('thread.get').length - 1
        send(bytes, transfer)
      }
      return { port1, port2 }
    }
    const config = { ...readConfig(boardDirectory()), port: 0, limitsOn: false, shards: 1, engine }
    server = await startServer(config, { ...machine, channel })
    client = await Client.of(server)
  })
  afterAll(async () => {
    client?.close()
    await server?.close()
  })

  test.each(['/api/thread/', '/e/'])('%s: 64 readers of a new thread cost at most two shard requests', async (path) => {
    const { data } = await client.post(person('ada'), { room: 'shared', text: `read by many at ${path}` })
    asked = 0
    const answers = await Promise.all(
      Array.from({ length: readers }, () => client.get(`${path}${data.receipt!.event_id}`)),
    )
    // An address requested once is not cached: a request after the first answer is computed again, and that answer is cached.
    expect(asked).toBeGreaterThan(0)
    expect(asked).toBeLessThanOrEqual(2)
    expect(new Set(answers.map(({ status, text }) => `${status} ${text.includes('read by many')}`))).toEqual(
      new Set(['200 true']),
    )
  })
})
