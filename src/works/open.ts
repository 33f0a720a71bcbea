/** What the board does about works and credits by itself: mail between market and rooms, the market's clock, welcome grants. */
import { createHmac } from 'node:crypto'
import type { BoardDirectory } from '../board-directory.ts'
import { wallSeconds } from '../clock.ts'
import type { Voice } from '../command/board-signer.ts'
import type { News } from '../command/live-facts.ts'
import { log } from '../observe.ts'
import type { House } from '../threads/actor-host.ts'
import { MarketClock } from './clock.ts'
import { Welcome } from './welcome.ts'
import { Courier, type CourierOptions } from './work-mail.ts'

export type WorksOptions = Pick<CourierOptions, 'screen'> & {
  readonly news: News
  readonly house: House
  readonly directory: BoardDirectory
  readonly voice: () => Voice
  readonly limitsOn: boolean
}

export type Works = {
  readonly courier: Courier
  readonly welcome: Welcome
  /** What an earlier run has left is said, and what fell due since is recorded. */
  resume(): Promise<void>
  close(): void
}

export function openWorks({ house, news, directory, voice, limitsOn, screen }: WorksOptions): Works {
  const clock = new MarketClock(house, directory.facts.generation)
  const courier = new Courier({
    actors: house,
    screen,
    noteChange: (room, change) => news.noteChange(room, change),
    handles: news.handles,
    sign: (fields, cause) => voice().signed(fields, cause),
    board: directory.identity.id,
    generation: directory.facts.generation,
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
    courier,
    welcome,
    resume: async () => {
      await courier.resume()
      await clock.begin()
      welcome.resume()
    },
    close: () => {
      courier.close()
      clock.close()
      welcome.close()
    },
  }
}

/** Keeps no process alive. */
function later(callback: () => void, ms: number): void {
  setTimeout(callback, ms).unref()
}
