/** The other side of the link bench: answers every letter with a small one. */

import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { Link } from '../actors/kernel/link.ts'
import { systemClock } from '../src/clock.ts'

export type EchoTask = { readonly linked: MessagePort; readonly bare: MessagePort }

const { linked, bare } = workerData as EchoTask
const link: Link = new Link({
  port: linked,
  openMax: 1,
  patienceMs: 30_000,
  now: systemClock.monotonicMs,
  timers: systemClock,
  onAsk: (_body, id) => link.answer(id, { ok: true, change: id, leaf: id }),
})
bare.on('message', () => bare.postMessage(1))
parentPort!.postMessage('ready')
