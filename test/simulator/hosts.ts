/** Hosts of tools, as strangers run them: they answer well, late, with garbage, or not at all, and remember their requests. */
import type { Clock } from '../../src/clock.ts'
import {
  type Answered,
  type NotAnswered,
  type Outgoing,
  type OutgoingRequest,
  totalMsDefault,
} from '../../src/outgoing/request.ts'
import type { Simulation } from '../support/simulation.ts'

/** What a host does with a request. `deaf`: it accepts it and never answers. */
const moods = ['well', 'late', 'refuses', 'breaks', 'fails', 'garbage', 'redirects', 'deaf'] as const
type Mood = (typeof moods)[number]

/** A request as its host reads it. */
export type Visit = {
  readonly host: string
  readonly path: string
  /** The word that identifies a call; undefined: it has none. */
  readonly call: string | undefined
}

/** What a host says of itself at its `/.well-known/broadside.json`. */
type Said = { readonly owners: Set<string>; isOut: boolean }

export const wellKnownPath = '/.well-known/broadside.json'
export const mcpPath = '/mcp'
const mcpVersion = '2026-07-28'
const lateMsMax = 40_000

export class SimulatedHosts {
  readonly #sim: Simulation
  readonly #take: (visit: Visit) => void
  readonly #moods = new Map<string, Mood>()
  readonly #said = new Map<string, Said>()

  /** `take`: called for each request to a host. */
  constructor(sim: Simulation, take: (visit: Visit) => void) {
    this.#sim = sim
    this.#take = take
  }

  /** The outgoing connection of a board whose main thread has this clock. */
  outgoing(clock: Clock): Outgoing {
    return { request: (asked) => this.#request(clock, asked), close: () => {} }
  }

  /** This host behaves differently from now on. */
  change(host: string): void {
    this.#moods.set(host, moods[this.#sim.chance(moods.length)]!)
  }

  heal(): void {
    this.#moods.clear()
  }

  /** It names this identity as its only owner. */
  name(host: string, identity: string): void {
    const { owners } = this.#saidBy(host)
    owners.clear()
    owners.add(identity)
  }

  /** It opts out of directories, or in again. */
  optOut(host: string, isOut: boolean): void {
    this.#saidBy(host).isOut = isOut
  }

  #saidBy(host: string): Said {
    const known = this.#said.get(host) ?? { owners: new Set(), isOut: false }
    this.#said.set(host, known)
    return known
  }

  #request(clock: Clock, asked: OutgoingRequest): Promise<Answered | NotAnswered> {
    const { hostname: host } = new URL(asked.url)
    const { totalMs = totalMsDefault, signal } = asked
    const mood = this.#moods.get(host) ?? 'well'
    return new Promise((resolve) => {
      if (mood === 'refuses') return void clock.later(() => resolve(notAnswered('refused', false)), this.#ms)
      const giveUp = () => resolve(notAnswered('timeout', true))
      const cancel = clock.later(giveUp, totalMs)
      signal?.addEventListener('abort', () => resolve(notAnswered('unknown', true)), { once: true })
      // It is in flight: nothing that happens to the board ends it.
      this.#sim.elsewhere(
        () => {
          const answer = this.#answer(host, mood, asked)
          if (answer === undefined) return
          this.#sim.elsewhere(() => {
            clock.later(() => {
              cancel()
              resolve(answer)
            }, 0)
          }, this.#ms)
        },
        mood === 'late' ? this.#sim.chance(lateMsMax) : this.#ms,
      )
    })
  }

  get #ms(): number {
    return 1 + this.#sim.chance(60)
  }

  /** Undefined: no answer. */
  #answer(host: string, mood: Mood, { url, body }: OutgoingRequest): Answered | NotAnswered | undefined {
    const { pathname: path, searchParams } = new URL(url)
    const message = path === mcpPath ? (JSON.parse(String(body)) as McpMessage) : undefined
    const call = message === undefined ? searchParams.get('call') : message.params?.arguments?.call
    this.#take({ host, path, call: call ?? undefined })
    if (mood === 'deaf') return undefined
    if (mood === 'breaks') return notAnswered('unknown', true)
    if (mood === 'redirects') return { ...notAnswered('redirect', true), status: 302 }
    if (mood === 'fails') return answered(500, 'text/plain', 'out of order')
    if (mood === 'garbage') return answered(200, 'application/json', '{"owners":7,"\u0000')
    if (path === wellKnownPath) {
      const { owners, isOut } = this.#saidBy(host)
      return answered(200, 'application/json', JSON.stringify({ owners: [...owners], opt_out: isOut }))
    }
    return answered(200, 'application/json', JSON.stringify(message === undefined ? { call } : mcpAnswer(message)))
  }
}

type McpMessage = {
  readonly id: number
  readonly method: string
  readonly params?: { readonly arguments?: { readonly call?: string } }
}

function mcpAnswer({ id, method, params }: McpMessage): object {
  const result = method === 'server/discover' ? { supportedVersions: [mcpVersion] } : { call: params?.arguments?.call }
  return { jsonrpc: '2.0', id, result }
}

function notAnswered(failure: NotAnswered['failure'], sent: boolean): NotAnswered {
  return { ok: false, failure, reason: `a simulated host: ${failure}`, sent }
}

function answered(status: number, type: string, body: string): Answered {
  return { ok: true, status, headers: { 'content-type': [type] }, body: Buffer.from(body) }
}
