/**
 * Counts what a board's threads do, from inside and without changing the board: `node --import <this file> ... serve`.
 *
 * It runs first in every thread, names the thread for /proc, and wraps the calls that are counted. So a board of any commit can be counted.
 * The sums are in memory shared by all threads; readCounts (counts.ts) reads them from the socket BENCH_COUNTS.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  BroadcastChannel,
  getEnvironmentData,
  isMainThread,
  MessagePort,
  setEnvironmentData,
  threadName,
} from 'node:worker_threads'
import { type CountName, countNames } from './counts.ts'

const key = 'broadside bench counts'
if (isMainThread) setEnvironmentData(key, new BigInt64Array(new SharedArrayBuffer(countNames.length * 8)))
const sums = getEnvironmentData(key) as unknown as BigInt64Array

type Method = (this: unknown, ...given: unknown[]) => unknown

/** The function, counting every call. */
function counted(name: CountName, method: Method): Method {
  const place = countNames.indexOf(name)
  return function (...given) {
    Atomics.add(sums, place, 1n)
    return method.apply(this, given)
  }
}

/** Wraps methods of an object in place. */
function count(name: CountName, owner: object, ...methods: string[]): void {
  const open = owner as Record<string, Method>
  for (const method of methods) open[method] = counted(name, open[method]!)
}

async function countAll(): Promise<void> {
  count('messages', MessagePort.prototype, 'postMessage')
  count('messages', BroadcastChannel.prototype, 'postMessage')
  count('syncs', fs, 'fsyncSync', 'fdatasyncSync', 'fsync', 'fdatasync')
  count('writes', fs, 'writeSync', 'writevSync', 'write', 'writev')
  syncBuiltinESMExports()
  count('json parsed', JSON, 'parse')
  count('json written', JSON, 'stringify')
  // The board's own copy of the library: packers bind their function when they are created, readers use their class.
  const file = join(process.cwd(), 'node_modules', 'msgpackr', 'pack.js')
  if (!fs.existsSync(file)) return
  const { Packr } = await import(pathToFileURL(file).href)
  count('msgpack read', Object.getPrototypeOf(Packr).prototype, 'unpack')
  Object.defineProperty(Packr.prototype, 'pack', {
    set(pack: Method) {
      Object.defineProperty(this, 'pack', { value: counted('msgpack written', pack), writable: true, enumerable: true })
    },
  })
}

/** Linux stores a 15-byte name for every thread; by default it is `node` for all. */
function nameThread(): void {
  const file = process.argv[1] ?? ''
  const own = threadName === null || threadName === '' || threadName === 'WorkerThread' ? undefined : threadName
  const ofFile = file.includes('piscina') ? 'verify' : basename(file).replace(/\.[cm]?[jt]s$/, '')
  const name = isMainThread ? 'front' : (own ?? ofFile)
  try {
    fs.writeFileSync('/proc/thread-self/comm', name.slice(0, 15))
  } catch {
    // Not Linux: the threads stay unnamed.
  }
}

nameThread()
const { BENCH_COUNTS: socket, BENCH_PROFILE: profile } = process.env
// In a profile the wrappers would appear between the frames.
if (profile === undefined) await countAll()
if (isMainThread && socket !== undefined) {
  createServer((peer) => {
    const found = countNames.map((name, place) => [name, Number(Atomics.load(sums, place))])
    peer.end(JSON.stringify(Object.fromEntries(found)))
  })
    .listen(socket)
    .unref()
}
