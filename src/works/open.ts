/** What the board does about works and credits by itself: letters between shards, the market's clock, welcome grants. */
import { createHmac } from 'node:crypto'
import type { Requested } from '../../actors/works/delivery.ts'
import type { BoardDirectory } from '../board-directory.ts'
import { wallSeconds } from '../clock.ts'
import type { News } from '../command/live-facts.ts'
import type { Screened } from '../moderation/screening.ts'
import { log } from '../observe.ts'
import type { House } from '../threads/actor-host.ts'
import { Carrier } from './carrier.ts'
import { MarketClock } from './clock.ts'
import { Welcome } from './welcome.ts'

export type WorksOptions = {
  /** Takes the text of a request that its room wants screened. */
  readonly screen: (post: Screened) => void
  readonly news: News
  readonly house: House
  readonly directory: BoardDirectory
  readonly limitsOn: boolean
}

export type Works = {
  readonly carrier: Carrier
  /** The request of a work was posted, or has a new version. */
  requested(requested: Requested): void
  readonly welcome: Welcome
  /** What an earlier run has left is said, and what fell due since is written down. */
  resume(): Promise<void>
  close(): void
}

export function openWorks({ house, news, directory, limitsOn, screen }: WorksOptions): Works {
  const clock = new MarketClock(house, directory.facts.generation)
  const carrier = new Carrier({
    actors: house,
    noteChange: (room, change) => news.noteChange(room, change),
    later,
    report: (facts) => log('warn', 'work.not_said', facts),
  })
  const welcome = new Welcome({
    actors: house,
    limitsOn,
    secret: createHmac('sha256', directory.identity.seed).update('broadside-networks-v1').digest(),
    board: directory.identity.id,
    wallSeconds,
    later,
  })
  return {
    carrier,
    requested: ({ room, id, change, screen: wanted }) => {
      if (change !== undefined) news.noteChange(room, change)
      if (wanted !== undefined) screen({ id, room, kind: 'request', isReply: false, ...wanted })
    },
    welcome,
    resume: async () => {
      await carrier.resume()
      await clock.begin()
      welcome.resume()
    },
    close: () => {
      carrier.close()
      clock.close()
      welcome.close()
    },
  }
}

/** Keeps no process alive. */
function later(callback: () => void, ms: number): void {
  setTimeout(callback, ms).unref()
}
