/** A thread accepts its words, messages and stop at any time, and reports its state in order. */
import { expect, test } from 'vitest'
import type { FromThread } from '../../../actors/kernel/supervisor.ts'
import { machine } from '../../../src/platform.ts'
import { runThread, type ThreadStarter } from '../../../src/workers/thread.ts'

/** A thread on a line that the test controls, and what it reports. */
function running(starter: ThreadStarter<string, string>) {
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

test('words that arrive early are kept, and other messages wait until the thread is running', async () => {
  const loaded = Promise.withResolvers<void>()
  const heard: unknown[] = []
  const thread = running(async (data, here, word) => {
    here.tellKnown({ data })
    await loaded.promise
    const facts = { first: await word(), second: await word(), third: await word() }
    return { facts, stop: () => {}, onMessage: (message) => heard.push(message) }
  })
  thread.send({ kind: 'word', word: 'open' })
  thread.send({ more: 1 })
  thread.send({ kind: 'word', word: 'go' })
  loaded.resolve()
  await new Promise(setImmediate)
  thread.send({ more: 2 })
  thread.send({ kind: 'word', word: 'on' })
  await thread.started
  thread.send({ more: 3 })
  thread.send({ kind: 'stop' })
  await thread.ended
  expect(heard).toEqual([{ more: 1 }, { more: 2 }, { more: 3 }])
  expect(thread.said).toEqual([
    { kind: 'known', facts: { data: 'data' } },
    { kind: 'ready', facts: { first: 'open', second: 'go', third: 'on' } },
    { kind: 'stopped' },
  ])
})

test('a stop ends a thread that waits for a word that never comes', async () => {
  const thread = running(async (_data, _here, word) => ({ facts: { word: await word() }, stop: () => {} }))
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
