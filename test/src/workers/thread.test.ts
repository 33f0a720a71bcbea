/** A thread accepts its first message and its stop at any time, and reports its state in order. */
import { expect, test } from 'vitest'
import type { FromThread } from '../../../actors/kernel/supervisor.ts'
import { machine } from '../../../src/platform.ts'
import { runThread, type ThreadStarter } from '../../../src/workers/thread.ts'

/** A thread on a line that the test controls, and what it reports. */
function running(starter: ThreadStarter<string, { readonly word: string }>) {
  const said: FromThread[] = []
  const ended = Promise.withResolvers<void>()
  let take = (_message: unknown): void => {}
  const line = {
    send: (message: FromThread) => said.push(message),
    onMessage: (taker: (message: unknown) => void) => {
      take = taker
    },
    close: ended.resolve,
  }
  const started = runThread(starter, 'data', machine, line, ended.reject)
  return { said, started, ended: ended.promise, send: (message: unknown) => take(message) }
}

test('a first message that arrives early is kept, and later ones go to the thread', async () => {
  const loaded = Promise.withResolvers<void>()
  const heard: unknown[] = []
  const thread = running(async (data, here, word) => {
    here.tellKnown({ data })
    await loaded.promise
    const { word: first } = await word()
    return { facts: { first }, stop: () => {}, onMessage: (message) => heard.push(message) }
  })
  thread.send({ word: 'go' })
  thread.send({ more: 1 })
  loaded.resolve()
  await thread.started
  thread.send({ more: 2 })
  thread.send({ kind: 'stop' })
  await thread.ended
  expect(heard).toEqual([{ more: 1 }, { more: 2 }])
  expect(thread.said).toEqual([
    { kind: 'known', facts: { data: 'data' } },
    { kind: 'ready', facts: { first: 'go' } },
    { kind: 'stopped' },
  ])
})

test('a stop ends a thread that waits for a first message that never comes', async () => {
  const thread = running(async (_data, _here, word) => ({ facts: await word(), stop: () => {} }))
  thread.send({ kind: 'stop' })
  await thread.ended
  expect(thread.said).toEqual([{ kind: 'stopped' }])
})

test('a stop during the start of a thread waits until it can finish what it has begun', async () => {
  const opened = Promise.withResolvers<void>()
  const files: string[] = []
  const thread = running(async () => {
    await opened.promise
    files.push('open')
    return { facts: {}, stop: () => void files.push('closed') }
  })
  thread.send({ kind: 'stop' })
  opened.resolve()
  await thread.ended
  expect(files).toEqual(['open', 'closed'])
  expect(thread.said).toEqual([{ kind: 'ready', facts: {} }, { kind: 'stopped' }])
})
