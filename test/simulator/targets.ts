/** Addresses that webhooks are delivered to, and the file in which a board stores the state of its deliveries. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { Clock } from '../../src/clock.ts'
import type { Posted, Poster, PostTarget } from '../../src/outgoing/poster.ts'
import { openDatabase } from '../../src/sqlite.ts'
import { DeliveryStore } from '../../src/webhooks/store.ts'
import { type DeliveryThread, delivering } from '../../src/workers/delivery.ts'
import type { ThreadPlatform } from '../../src/workers/thread.ts'
import type { Simulation } from '../support/simulation.ts'

/** A delivery as its target reads it. */
export type ReceivedDelivery = {
  /** `webhook-id`. */
  readonly id: string
  /** Id of the webhook. */
  readonly hook: string
  readonly timestamp: number
  readonly signature: string
  readonly body: string
}

/** What an address does with a delivery. `deaf`: it accepts it, and its answer is lost. */
const behaviors = ['well', 'refuses', 'fails', 'deaf'] as const
type Behavior = (typeof behaviors)[number]

const tables = ['tails', 'hooks', 'recent', 'verified']
export type Rows = readonly (readonly [table: string, rows: readonly Readonly<Record<string, SQLInputValue>>[]])[]

/** One in this many commits is remembered, as what a power cut may leave. */
const rememberedEvery = 8

export class SimulatedTargets {
  readonly #sim: Simulation
  readonly #onDelivery: (letter: ReceivedDelivery) => void
  readonly #behaviors = new Map<string, Behavior>()
  #database: DatabaseSync
  #older: Rows = []
  /** The only reference from a database to this object: SQLite never frees a database with statements, nor anything that it references. */
  readonly #commits = { happened: () => {} }

  /** `take`: called for each delivery to a target. */
  constructor(sim: Simulation, take: (letter: ReceivedDelivery) => void) {
    this.#sim = sim
    this.#onDelivery = take
    this.#database = openWith([], this.#commits)
    this.#commits.happened = () => {
      if (sim.randomBelow(rememberedEvery) === 0) this.#older = this.rows
    }
    sim.onCut(() => this.#cut())
  }

  /** The run is over, and can be forgotten. */
  end(): void {
    this.#commits.happened = () => {}
  }

  readonly thread = (data: unknown, here: ThreadPlatform) =>
    delivering(data as DeliveryThread, here, {
      store: DeliveryStore.in(this.#database, 'delivery.sqlite'),
      poster: this.#posterOf(here.clock),
    })

  /** Some address behaves differently from now on. */
  changeBehavior(url: string): void {
    this.#behaviors.set(url, behaviors[this.#sim.randomBelow(behaviors.length)]!)
  }

  heal(): void {
    this.#behaviors.clear()
  }

  get rows(): Rows {
    return tables.map((table) => [
      table,
      this.#database.prepare(`SELECT * FROM ${table}`).all() as Readonly<Record<string, SQLInputValue>>[],
    ])
  }

  /** Restores the file of another time. */
  restore(rows: Rows): void {
    this.#database = openWith(rows, this.#commits)
  }

  /** SQLite syncs some commits later: the newest of them may be gone, and rarely the file is. */
  #cut(): void {
    const fate = this.#sim.randomBelow(8)
    if (fate === 0) this.restore([])
    else if (fate < 4) this.restore(this.#older)
  }

  #posterOf(clock: Clock): Pick<Poster, 'target' | 'post' | 'close'> {
    return {
      target: (address) => {
        const url = new URL(address)
        const path = `${url.pathname}${url.search}`
        return { host: url.hostname, port: 443, secure: true, origin: url.origin, path }
      },
      post: ({ target, headers, body, totalMs }, done) => {
        const ms = 1 + this.#sim.randomBelow(60)
        clock.later(
          () =>
            this.#receive(
              target,
              headers,
              body,
              (posted, late = 0) => clock.later(() => done(posted), late || ms),
              totalMs,
            ),
          ms,
        )
      },
      close: () => {},
    }
  }

  #receive(
    { origin, path }: PostTarget,
    headers: readonly string[],
    body: string,
    answer: (posted: Posted, afterMs?: number) => void,
    totalMs: number,
  ): void {
    const behavior = this.#behaviors.get(`${origin}${path}`) ?? 'well'
    if (behavior === 'refuses') return answer({ ok: false, failure: 'refused', status: 0 })
    const { challenge } = JSON.parse(body) as { readonly challenge?: string }
    if (behavior === 'well' || behavior === 'deaf')
      if (challenge === undefined) this.#onDelivery(deliveryOf(headers, body))
    if (behavior === 'deaf') return answer({ ok: false, failure: 'timeout', status: 0 }, totalMs)
    const status = behavior === 'fails' ? 500 : 200
    answer({ ok: true, status, retryAfter: undefined, body: Buffer.from(JSON.stringify({ challenge })) })
  }
}

function deliveryOf(headers: readonly string[], body: string): ReceivedDelivery {
  const value = (name: string): string => headers[headers.indexOf(name) + 1]!
  return {
    id: value('webhook-id'),
    hook: value('x-mcp-subscription-id'),
    timestamp: Number(value('webhook-timestamp')),
    signature: value('webhook-signature'),
    body,
  }
}

function openWith(rows: Rows, commits: { readonly happened: () => void }): DatabaseSync {
  const database = openDatabase(':memory:')
  DeliveryStore.in(database, 'delivery.sqlite')
  for (const [table, all] of rows)
    for (const row of all) {
      const names = Object.keys(row)
      const marks = names.map(() => '?').join(',')
      database.prepare(`INSERT INTO ${table} (${names.join(',')}) VALUES (${marks})`).run(...Object.values(row))
    }
  const exec = database.exec.bind(database)
  database.exec = (sql) => {
    exec(sql)
    if (sql === 'COMMIT') commits.happened()
  }
  // What a process leaves stays.
  database.close = () => {}
  return database
}
