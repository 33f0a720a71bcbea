/**
 * A hostile client of one address, in a process of its own: asks for what is dearest at the rates that a board allows, and makes
 * it old again by posting beside it. Its pages and posts are made by hostile.bench.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, person } from '../test/support/client.ts'

export type Attack = {
  readonly address: string
  readonly seconds: number
  /** Paths that are asked for in turn. */
  readonly paths?: readonly string[]
  /** Bodies that are sent as commands in turn: as many as are answered, eight at a time. */
  readonly bodies?: readonly string[]
  readonly perSecond: number
  /** A room in which something is posted twice a second, so that its pages are made anew. */
  readonly room?: string
}

export type Attacked = {
  readonly asked: number
  readonly statuses: Readonly<Record<number, number>>
  readonly p99Ms: number
}

const postsPerSecond = 2
const bodiesInFlight = 8

async function attack({ address, seconds, paths = [], bodies = [], perSecond, room }: Attack): Promise<Attacked> {
  const client = await Client.of({ address })
  const until = performance.now() + seconds * 1_000
  const statuses: Record<number, number> = {}
  const times: number[] = []
  const take = async (ask: () => Promise<{ readonly status: number }>): Promise<void> => {
    const start = performance.now()
    const { status } = await ask()
    times.push(performance.now() - start)
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  const open: Promise<void>[] = []
  const atRate = async (rate: number, act: (n: number) => void): Promise<void> => {
    for (let n = 0; performance.now() < until; n++) {
      act(n)
      await sleep(1_000 / rate)
    }
  }
  const asking = atRate(perSecond, (n) => {
    if (paths.length > 0) open.push(take(() => client.get(paths[n % paths.length]!)))
  })
  const posting = atRate(postsPerSecond, (n) => {
    if (room !== undefined) open.push(take(() => client.post(person('hostile'), { room, text: `makes it old ${n}` })))
  })
  const sending = Array.from({ length: bodies.length === 0 ? 0 : bodiesInFlight }, async () => {
    while (performance.now() < until) await take(() => client.send(bodies[times.length % bodies.length]!))
  })
  await Promise.all([asking, posting, ...sending])
  await Promise.all(open)
  client.close()
  times.sort((a, b) => a - b)
  return { asked: times.length, statuses, p99Ms: times[Math.floor(times.length * 0.99)] ?? 0 }
}

process.on('message', (asked: Attack) => {
  attack(asked).then(
    (attacked) => process.send?.({ attacked }),
    (error: Error) => process.send?.({ problem: error.stack ?? error.message }),
  )
})
process.once('disconnect', () => process.exit(0))
