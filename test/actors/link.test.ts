/** The order in which two threads receive each other's messages, and how much a link buffers. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { Link, type Port } from '../../actors/kernel/link.ts'
import { Packr } from '../../actors/kernel/msgpack.ts'
import { systemClock } from '../../src/clock.ts'
import { BlobFiles } from '../../storage/blob-files.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { filesUnder } from '../support/files-under.ts'
import { scratchDirectory } from '../support/scratch.ts'

/** A near end, and a far end that runs `turn` for each request. */
function linked(turn: (far: Link, id: number) => void, onTell: (body: unknown) => void) {
  const { port1, port2 } = new MessageChannel()
  const common = { openMax: 10, patienceMs: 60_000, now: () => 0, timers: systemClock }
  const far: Link = new Link({ ...common, port: port2, onAsk: (_body, id) => turn(far, id) })
  return new Link({ ...common, port: port1, onTell })
}

test('notifications sent before an answer arrive before it, and those sent after it arrive after it', async () => {
  const heard: unknown[] = []
  const near = linked(
    (far, id) => {
      for (const each of ['one', 'two']) far.tell(each)
      far.answer(id, 'answer')
      for (const each of ['three', 'four']) far.tell(each)
    },
    (body) => heard.push(body),
  )
  await new Promise<void>((resolve) => {
    near.ask<string, undefined>('ask', (answered) => {
      heard.push(answered.ok && answered.body)
      resolve()
    })
  })
  await expect.poll(() => heard.length).toBe(5)
  expect(heard).toEqual(['one', 'two', 'answer', 'three', 'four'])
  near.close()
})

test('a file that a shard drops and needs again a moment later stays', async () => {
  const directory = scratchDirectory()
  mkdirSync(join(directory, 'den'))
  const files = new BlobFiles(machineDisk, directory, () => {})
  await files.hold('den', 'sha', Buffer.from('bytes'))
  // A compaction ends and the next turn accepts a post with the same file, before either message is sent.
  const near = linked(
    (far, id) => {
      far.tell('unneeded')
      far.answer(id, 'named')
    },
    () => files.drop('den', 'sha'),
  )
  await new Promise<void>((resolve) => {
    near.ask('post', () => {
      files.release('den', 'sha', true)
      resolve()
    })
  })
  near.close()
  await new Promise((resolve) => setImmediate(resolve))
  expect([...filesUnder(directory)].map(([name]) => name)).toEqual([join('den', 'sha')])
})

test('a page is sent before the next ask of the same tick is handled; short answers share a message', async () => {
  for (const [bytes, messages] of [
    [20_000, 8],
    [100, 1],
  ] as const) {
    const { port1, port2 } = new MessageChannel()
    const common = { openMax: 10, patienceMs: 60_000, now: () => 0, timers: systemClock }
    let sent = 0
    const sentAt: number[] = []
    const counted: Port = {
      on: (event, take) => port2.on(event, take),
      postMessage: (message, transfer) => {
        sent++
        port2.postMessage(message, [...transfer])
      },
      close: () => port2.close(),
    }
    const far: Link = new Link({
      ...common,
      port: counted,
      onAsk: (_body, id) => {
        sentAt.push(sent)
        far.answer(id, Buffer.alloc(bytes))
      },
    })
    const near = new Link({ ...common, port: port1 })
    await Promise.all(Array.from({ length: 8 }, () => new Promise((resolve) => near.ask('page', resolve))))
    expect(sent).toBe(messages)
    expect(sentAt).toEqual(Array.from({ length: 8 }, (_, n) => (messages === 1 ? 0 : n)))
    near.close()
  }
})

test('large answers of one tick are sent one after the other, and no large buffer is retained', async () => {
  const { port1, port2 } = new MessageChannel()
  const common = { openMax: 64, patienceMs: 60_000, now: () => 0, timers: systemClock }
  const asked: number[] = []
  const far: Link = new Link({
    ...common,
    port: port2,
    onAsk: (_body, id) => {
      if (asked.push(id) < 64) return
      for (const each of asked) far.answer(each, { ok: true, bytes: Buffer.alloc(256 * 1024), state: { row: each } })
    },
  })
  const sizes: number[] = []
  port1.on('message', (bytes: Uint8Array) => sizes.push(bytes.length))
  const near = new Link({ ...common, port: port1 })
  type Chunk = { readonly bytes: Uint8Array; readonly state: { readonly row: number } }
  const ask = () =>
    new Promise((resolve) =>
      near.ask<Chunk, undefined>('export', (answered) =>
        resolve(answered.ok && [answered.body.bytes.length, answered.body.state.row]),
      ),
    )
  expect(await Promise.all(Array.from({ length: 64 }, ask))).toEqual(asked.map((id) => [256 * 1024, id]))
  expect(Math.max(...sizes)).toBeLessThan(2 * 1024 * 1024)
  // All codecs of a thread share one buffer: a larger letter makes it grow, and it is released with that letter.
  far.answer(0, { ok: true, bytes: Buffer.alloc(8 * 1024 * 1024) })
  expect(new Packr().pack('a letter').buffer.byteLength).toBeLessThan(8 * 1024 * 1024)
  near.close()
})
