/** Records come back from their frames as they were, whatever the other threads of the process do meanwhile. */
import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { afterAll, expect, test } from 'vitest'
import { type BoardRecord, fromFrame, RecordType, toFrame } from '../../../actors/records/record.ts'

const require = createRequire(import.meta.url)
const extract = require.resolve('msgpackr-extract')
const prebuilt = createRequire(extract)('node-gyp-build-optional-packages') as { path: (directory: string) => string }
const addon = prebuilt.path(extract.slice(0, extract.lastIndexOf('/')))

/** A thread that does nothing but set the addon up again, as each newborn thread does once. */
const loader = new Worker(
  `const { parentPort } = require('node:worker_threads')
   process.dlopen({ exports: {} }, ${JSON.stringify(addon)})
   parentPort.postMessage('loaded')
   for (;;) process.dlopen({ exports: {} }, ${JSON.stringify(addon)})`,
  { eval: true },
)
afterAll(() => loader.terminate())

test('records are decoded right while another thread loads the native string reader', async () => {
  await new Promise((resolve) => loader.once('message', resolve))
  const key = randomBytes(16)
  const record: BoardRecord = {
    type: RecordType.event,
    room: 'lobby',
    page: 'main',
    kind: 'message',
    seq: 400,
    at: 1_790_000_000,
    author: randomBytes(32),
    by: {
      key: randomBytes(32),
      sig: randomBytes(64),
      signed: Buffer.from('{"text":"a text of some length"}'.repeat(16)),
    },
    reply: randomBytes(16),
    via: 'api',
  }
  const frame = { ...toFrame(record, key, true, []), seq: 1 }
  const payload = Buffer.from(frame.payload)
  let wrong = 0
  for (let i = 0; i < 30_000; i += 1) {
    const read = fromFrame({ ...frame, payload }) as typeof record
    if (read.by?.signed === undefined || read.via !== 'api' || read.reply?.length !== 16) wrong += 1
  }
  expect(wrong).toBe(0)
  expect(fromFrame({ ...frame, payload })).toEqual(record)
})
