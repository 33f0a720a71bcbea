/**
 * Is a letter to another thread cheap because letters travel together?
 *
 * A letter as a shard gets it (about 500 bytes), answered by the other thread. The limit is the same number of round trips of a bare
 * MessagePort with one number per message, 64 in flight; the plain alternative is one postMessage per letter, cloned.
 */

import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import { Link } from '../actors/kernel/link.ts'
import { Mailbox } from '../actors/kernel/mailbox.ts'
import { systemClock } from '../src/clock.ts'
import { type Case, compare, looped } from './compare.ts'
import type { EchoTask } from './echo-thread.ts'
import type { Bench } from './report.ts'

const letter = {
  op: 'post',
  to: 'lobby',
  id: '0123456789abcdef0123456789abcdef',
  timestamp: 1_790_000_000,
  nonce: 'AAAAAAAAAAAAAAAAAAAAAA',
  bytes: Buffer.alloc(350, 'x'),
  signature: Buffer.alloc(64, 1),
}

export const linkBench: Bench = {
  name: 'link',
  question: 'Is a letter to another thread cheap because letters travel together?',
  run: async ({ isQuick }) => {
    const linked = new MessageChannel()
    const bare = new MessageChannel()
    const task: EchoTask = { linked: linked.port2, bare: bare.port2 }
    const worker = new Worker(new URL('./echo-thread.ts', import.meta.url), {
      workerData: task,
      transferList: [linked.port2, bare.port2],
    })
    await once(worker, 'message')
    const link = new Link({
      port: linked.port1,
      openMax: 1024,
      patienceMs: 30_000,
      now: systemClock.monotonicMs,
      timers: systemClock,
    })
    const ask = (answered: () => void) => link.ask(letter, answered)
    const rows = await compare(
      bareTrips('bare MessagePort, a number, 64 under way', bare.port1, 64, 7),
      [
        trips('Link.ask, 1 under way', 1, ask),
        trips('Link.ask, 64 under way', 64, ask),
        trips('Link.ask, 512 under way', 512, ask),
        bareTrips('plain: postMessage of the letter, 1 under way', bare.port1, 1, letter),
        bareTrips('plain: postMessage of the letter, 64 under way', bare.port1, 64, letter),
      ],
      { isQuick, unit: 'round trips' },
    )
    link.close()
    await worker.terminate()
    return [
      { title: 'letters to another thread and back', rows },
      { title: 'a mailbox, 64 letters in and out', rows: await mailboxRows(isQuick) },
    ]
  },
}

function mailboxRows(isQuick: boolean) {
  const mailbox = new Mailbox<typeof letter>(8192)
  let list: (typeof letter)[] = []
  const through = (once: () => void, out: () => unknown): Case['run'] => {
    return () => {
      for (let k = 0; k < 50; k++) {
        for (let n = 0; n < 64; n++) once()
        out()
      }
    }
  }
  const emptied = () => (list = [])
  const operations = 50 * 64
  return compare(
    { name: 'an array without a bound', operations, run: through(() => list.push(letter), emptied) },
    [
      {
        name: 'Mailbox.offer and take',
        operations,
        run: through(
          () => mailbox.offer(letter),
          () => mailbox.take(512),
        ),
      },
      looped('plain: array, shift one by one', operations, (n) => (n % 128 < 64 ? list.push(letter) : list.shift())),
    ],
    { isQuick, unit: 'letters' },
  )
}

/** Keeps `under` letters in flight until `operations` have come back. */
function trips(name: string, under: number, ask: (answered: () => void) => void): Case {
  const operations = under === 1 ? 32 : under * 8
  const run = () =>
    new Promise<void>((resolve) => {
      let sent = 0
      let back = 0
      const next = () => {
        sent++
        ask(() => {
          if (++back === operations) resolve()
          else if (sent < operations) next()
        })
      }
      for (let n = 0; n < under; n++) next()
    })
  return { name, operations, run }
}

function bareTrips(name: string, port: MessageChannel['port1'], under: number, body: unknown): Case {
  const waiting: (() => void)[] = []
  port.on('message', () => waiting.shift()?.())
  return trips(name, under, (answered) => {
    waiting.push(answered)
    port.postMessage(body)
  })
}
