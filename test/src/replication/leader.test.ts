/** A leader that is asked over HTTP, and does not answer as one should. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { askOverHttp, Leader, OutOfReach } from '../../../src/replication/leader.ts'

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function leader(answer: RequestListener): Promise<Leader> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return new Leader(
    [`http://127.0.0.1:${(server.address() as AddressInfo).port}`],
    '7'.repeat(64),
    askOverHttp(systemClock),
  )
}

const room = 'lobby'
const sha256 = '0'.repeat(64)

test('who begins no answer is out of reach, long before a slow answer would have to end', {
  timeout: 30_000,
}, async () => {
  const silent = await leader(() => {})
  const slow = await leader(async (_request, response) => {
    response.writeHead(200)
    for (const byte of 'slow')
      await pause(1_500).then(() => {
        response.write(byte)
      })
    response.end()
  })
  const asked = [silent.frames([]), silent.blob(room, sha256), slow.blob(room, sha256)]
  const [frames, blob, bytes] = await Promise.allSettled(asked)
  for (const each of [frames, blob]) expect(each).toMatchObject({ status: 'rejected', reason: expect.any(OutOfReach) })
  expect(bytes).toEqual({ status: 'fulfilled', value: Buffer.from('slow') })
})
