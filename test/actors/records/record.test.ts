/** Records are decoded from their frames as they were, whatever the other threads of the process do meanwhile. */
import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { afterAll, expect, test } from 'vitest'
import { Packr } from '../../../actors/kernel/msgpack.ts'
import { type BoardRecord, fromFrame, type PostRecord, RecordType, toFrame } from '../../../actors/records/record.ts'

const require = createRequire(import.meta.url)
const extract = require.resolve('msgpackr-extract')
const prebuilt = createRequire(extract)('node-gyp-build-optional-packages') as { path: (directory: string) => string }
const addon = prebuilt.path(extract.slice(0, extract.lastIndexOf('/')))

/** A thread that keeps initializing the addon, as each new thread does once. */
const loader = new Worker(
  `const { parentPort } = require('node:worker_threads')
   process.dlopen({ exports: {} }, ${JSON.stringify(addon)})
   parentPort.postMessage('loaded')
   for (;;) process.dlopen({ exports: {} }, ${JSON.stringify(addon)})`,
  { eval: true },
)
afterAll(() => loader.terminate())

test('records are decoded correctly while another thread loads the native string reader', async () => {
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

const event: PostRecord = {
  type: RecordType.event,
  room: 'lobby',
  page: 'main',
  kind: 'note',
  seq: 70_000,
  at: 1_790_000_000,
  author: randomBytes(32),
  by: { key: randomBytes(32), sig: randomBytes(64), signed: Buffer.from('{"version":1}') },
  via: 'command',
}
const delegated = { id: randomBytes(16), key: randomBytes(32), sig: randomBytes(64), signed: Buffer.from('{}') }
const cut = { at: 7, file: randomBytes(32), sha: randomBytes(32) }

test.each<[string, PostRecord]>([
  ['as most are', event],
  ['with other names', { ...event, page: 'help', kind: 'offer', via: 'mcp' }],
  ['with an empty page', { ...event, page: '' }],
  ['that is a reply', { ...event, reply: randomBytes(16), root: randomBytes(16) }],
  ['of a delegate', { ...event, by: { ...event.by, for: delegated } }],
  ['with a part cut out', { ...event, by: { ...event.by, cut } }],
  [
    'with everything else',
    {
      ...{ ...event, original: randomBytes(16), expires: 1_800_000_000, to: randomBytes(32), blobs: [randomBytes(16)] },
      ...{ format: 'markdown' as const, isRequest: true as const, by: { ...event.by, for: delegated, cut } },
    },
  ],
])('an event %s is decoded as it was written', (_, record) => {
  const { payload, ...frame } = toFrame(record, randomBytes(16), true, [])
  expect(fromFrame({ ...frame, payload: Buffer.from(payload), seq: 1 })).toStrictEqual(record)
})

test('an event of release 1.0, whose body is a map, is decoded as it was written', () => {
  const { type, ...body } = { ...event, reply: randomBytes(16), expires: 1_800_000_000 }
  const { payload } = toFrame(event, randomBytes(16), true, [])
  const old = Buffer.concat([
    payload.subarray(0, 18),
    new Packr({ useRecords: false, variableMapSize: true }).pack(body),
  ])
  expect(fromFrame({ type, flags: 0x80, payload: old, seq: 1 })).toStrictEqual({ type, ...body })
})
