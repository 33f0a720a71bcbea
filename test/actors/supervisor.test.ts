/** A thread that dies is restarted, and one that cannot be is given up with a reason, without an exception in the process. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { Supervised, type ThreadError } from '../../actors/kernel/supervisor.ts'
import { machine } from '../../src/platform.ts'
import { scratchDirectory } from '../support/scratch.ts'

const program = `export const thread = () => ({
  facts: { born: true },
  stop: () => process.exit(0),
  onMessage: (message) => {
    if (message !== 'fail twice') process.exit(message === 'die' ? 70 : 0)
    queueMicrotask(() => {
      throw new Error('it follows from the first')
    })
    throw new Error('the first failure')
  },
})`

/** A thread's file, with its entry beside it. */
function threadOf(program: string): URL {
  const directory = scratchDirectory()
  const entry = new URL('../../src/workers/entry.ts', import.meta.url)
  writeFileSync(join(directory, 'entry.ts'), `import ${JSON.stringify(entry.href)}`)
  writeFileSync(join(directory, 'mayfly.mjs'), program)
  return pathToFileURL(join(directory, 'mayfly.mjs'))
}

/** `births`: how many times it can be started. */
function supervised(births: number, mayRestart = true) {
  let left = births
  const fatal = Promise.withResolvers<{ name: string; error: ThreadError }>()
  const restarted = Promise.withResolvers<Readonly<Record<string, unknown>>>()
  const events: string[] = []
  const thread = new Supervised({
    ...machine,
    name: 'mayfly',
    file: threadOf(program),
    startData: () => {
      if (left-- === 0) throw new Error('no thread can be made now')
      return { data: undefined, transfer: [] }
    },
    onRestart: restarted.resolve,
    onEvent: (_, event) => events.push(event),
    onFatal: (name, error) => fatal.resolve({ name, error }),
    mayRestart: () => mayRestart,
    now: () => 0,
    timers: machine.clock,
  })
  return { thread, fatal: fatal.promise, restarted: restarted.promise, events }
}

test('a thread that dies is restarted', async () => {
  const { thread, restarted, events } = supervised(2)
  expect(await thread.start()).toEqual({ born: true })
  thread.send('die')
  expect(await restarted).toEqual({ born: true })
  expect(events).toEqual(['thread.died', 'thread.restarted'])
  await thread.stop(60_000)
})

test('one that cannot be restarted is given up, with the reason, and its heap is zero', async () => {
  const { thread, fatal } = supervised(1)
  await thread.start()
  expect((await thread.usage()).heapBytes).toBeGreaterThan(0)
  thread.send('die')
  expect(await fatal).toMatchObject({ name: 'mayfly', error: { message: 'no thread can be made now' } })
  expect(await thread.usage()).toEqual({ heapBytes: 0, activeSeconds: 0 })
})

test('the reason given is its first failure, not what else failed before it was gone', async () => {
  const { thread, fatal } = supervised(1, false)
  await thread.start()
  thread.send('fail twice')
  expect(await fatal).toMatchObject({ error: { message: 'the first failure' } })
})

test('one that cannot be started at all reports that to its starter', async () => {
  await expect(supervised(0).thread.start()).rejects.toThrow('no thread can be made now')
})
