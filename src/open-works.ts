/** What the board does about works and credits by itself: the courier between market and rooms, and the market's clock. */
import type { BoardDirectory } from './board-directory.ts'
import { Courier, type CourierOptions } from './command/courier.ts'
import { MarketClock } from './command/market-clock.ts'
import type { Voice } from './command/voice.ts'
import type { House } from './house.ts'
import { log } from './observe.ts'

export type WorksOptions = Pick<CourierOptions, 'screen' | 'noteChange'> & {
  readonly house: House
  readonly directory: BoardDirectory
  readonly voice: () => Voice
}

export type Works = {
  readonly courier: Courier
  /** What an earlier run has left is said, and what fell due since is written down. */
  resume(): Promise<void>
  close(): void
}

export function openWorks({ house, directory, voice, ...options }: WorksOptions): Works {
  const clock = new MarketClock(house, directory.facts.generation)
  const courier = new Courier({
    ...options,
    actors: house,
    say: (fields, cause, respond) => voice().say(fields, cause, respond),
    board: directory.identity.id,
    generation: directory.facts.generation,
    later: (callback, ms) => setTimeout(callback, ms).unref(),
    report: (facts) => log('warn', 'work.not_said', facts),
  })
  return {
    courier,
    resume: async () => {
      await courier.resume()
      await clock.begin()
    },
    close: () => {
      courier.close()
      clock.close()
    },
  }
}
