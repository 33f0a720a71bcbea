/**
 * Profiles every thread of a board with V8's sampling profiler, while a socket says so: `node --import <this file> ... serve`.
 *
 * The main thread listens on the socket BENCH_PROFILE; `start` and `stop` reach the threads on a channel of the process. On `stop` each
 * writes `<number>-<name>.cpuprofile` beside the socket, and the peer reads `done`.
 */
import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { createServer, type Socket } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { BroadcastChannel, isMainThread, threadId, threadName } from 'node:worker_threads'

const samplingUs = 500
/** A thread that is exiting never answers. */
const writeMsMax = 10_000

type Word = 'start' | 'stop' | 'here' | 'written'

const { BENCH_PROFILE: path = '' } = process.env
const name = isMainThread ? 'front' : (threadName ?? '') || basename(process.argv[1] ?? 'worker', '.js')
const session = new Session()
session.connect()
const channel = new BroadcastChannel('broadside bench profile')
channel.unref()

/** On the main thread: the number of threads that sample and that have written, and the peer that waits for them. */
let open = 0
let waiting: Socket | undefined

function start(): void {
  session.post('Profiler.enable')
  session.post('Profiler.setSamplingInterval', { interval: samplingUs })
  session.post('Profiler.start', () => tell('here'))
}

function stop(): void {
  session.post('Profiler.stop', (error, found) => {
    if (error === null) {
      const file = join(dirname(path), `${threadId}-${name.replaceAll(/[^\w-]/g, '_')}.cpuprofile`)
      writeFileSync(file, JSON.stringify(found.profile))
    }
    tell('written')
  })
}

/** Sends a word to the main thread, which does not hear its own. */
function tell(word: Word): void {
  if (isMainThread) take(word)
  else channel.postMessage(word)
}

function take(word: Word): void {
  if (word === 'start') start()
  else if (word === 'stop') stop()
  else if (!isMainThread) return
  else if (word === 'here') open++
  else if (--open === 0) waiting?.end('done')
}

channel.onmessage = (event) => take((event as MessageEvent).data as Word)

if (isMainThread && path !== '') {
  createServer((peer) => {
    peer.setEncoding('utf8').once('data', (text) => {
      const word = String(text) as Word
      channel.postMessage(word)
      take(word)
      if (word === 'start') peer.end('started')
      else waiting = peer
      peer.setTimeout(writeMsMax, () => peer.end('some did not write'))
    })
  })
    .listen(path)
    .unref()
}
