/** The thread that delivers, alone with somebody who never answers it. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import { expect, test, vi } from 'vitest'
import { threadArguments } from '../../../src/runtime/stripped.ts'
import type { DeliveryThread } from '../../../src/threads/delivery.ts'
import { scratchDirectory } from '../../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000 })

test('a stop while it is being told which hooks there are ends it, and waits for no answer', async () => {
  const file = new URL('../../../src/threads/delivery.ts', import.meta.url)
  const front = new MessageChannel()
  const asked = once(front.port1, 'message')
  const workerData: DeliveryThread = {
    ...{ directory: scratchDirectory(), sources: 2, cursorKey: randomBytes(32), generation: '', serviceId: '' },
    ...{ address: 'http://127.0.0.1', loopback: true, limitsOn: false, scale: 1, suspended: [], headSize: 0 },
    ...{ turns: new Int32Array(new SharedArrayBuffer(4)), front: front.port2 },
  }
  const worker = new Worker(file, {
    execArgv: [...threadArguments(file)],
    workerData,
    transferList: [front.port2],
  })
  const gone = once(worker, 'exit')
  await asked
  worker.postMessage({ kind: 'stop' })
  expect(await gone).toEqual([0])
})
