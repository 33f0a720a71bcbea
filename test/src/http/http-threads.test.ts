/** HTTP threads that die or fail at the worst time: while they start, and before they listen. */
import { expect, test, vi } from 'vitest'
import type { StartThread, Thread } from '../../../actors/kernel/supervisor.ts'
import { machine } from '../../../src/platform.ts'
import { HttpThreads } from '../../../src/workers/http-threads.ts'
import { get } from '../../support/http-engines.ts'
import { rawRequest } from '../../support/raw-http.ts'

vi.setConfig({ testTimeout: 60_000 })

function start(startThread: StartThread, fatal: string[] = []): Promise<HttpThreads> {
  return HttpThreads.start({
    ...machine,
    startThread,
    engine: 'node',
    threads: 2,
    handler: (exchange) => exchange.reply(200, [], 'here'),
    http: { now: () => performance.now(), refusal: () => '{}', onFault: () => '{}' },
    bodyBytesMax: 1_000,
    onFatal: (thread, { message }) => fatal.push(`${thread}: ${message}`),
  })
}

test('a thread that dies before it listens is replaced by one that does, and listening waits for that', async () => {
  const threads: Thread[] = []
  const fatal: string[] = []
  const server = await start((file, given) => {
    const thread = machine.startThread(file, given)
    threads.push(thread)
    return thread
  }, fatal)
  const listening = server.listen('127.0.0.1', 0)
  await threads[0]!.terminate()
  const port = await listening
  const answers = await Promise.all(Array.from({ length: 16 }, () => rawRequest(port, get('/'))))
  expect(new Set(answers.map((answer) => answer?.body.toString()))).toEqual(new Set(['here']))
  expect(threads).toHaveLength(3)
  expect(fatal).toEqual([])
  await server.close()
})

test('if one thread cannot be started none is left', async () => {
  const ended: number[] = []
  const refusing: StartThread = (file, given) => {
    if (given.name === 'http-1') throw new Error('no thread can be made')
    const thread = machine.startThread(file, given)
    thread.onExit((code) => ended.push(code))
    return thread
  }
  await expect(start(refusing)).rejects.toThrow('no thread can be made')
  expect(ended).toEqual([0])
})
