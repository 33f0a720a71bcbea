/** What the board does about works and credits by itself: the courier between market and rooms, and what waits for it. */
import type { BoardDirectory } from './board-directory.ts'
import { Courier, type CourierOptions } from './command/courier.ts'
import type { Voice } from './command/voice.ts'
import type { House } from './house.ts'
import { log } from './observe.ts'

export type WorksOptions = Pick<CourierOptions, 'screen' | 'noteChange'> & {
  readonly house: House
  readonly directory: BoardDirectory
  readonly voice: () => Voice
}

export function openWorks({ house, directory, voice, ...options }: WorksOptions): Courier {
  return new Courier({
    ...options,
    actors: house,
    say: (fields, cause, respond) => voice().say(fields, cause, respond),
    board: directory.identity.id,
    generation: directory.facts.generation,
    later: (callback, ms) => setTimeout(callback, ms).unref(),
    report: (facts) => log('warn', 'work.not_said', facts),
  })
}
