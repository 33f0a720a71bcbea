/** What the board does about works and credits by itself: mail between market and rooms, the market's clock, welcome grants. */
import { createHmac } from 'node:crypto'
import type { BoardDirectory } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import type { BoardSigner } from '../command/board-signer.ts'
import type { News } from '../command/live-facts.ts'
import type { ScreeningQueue } from '../moderation/screening.ts'
import { log } from '../observe.ts'
import type { House } from '../threads/actor-host.ts'
import { MarketClock } from './clock.ts'
import { Welcome } from './welcome.ts'
import { Courier } from './work-mail.ts'

export type WorksOptions = {
  readonly news: News
  readonly house: House
  readonly directory: BoardDirectory
  readonly clock: Clock
  readonly signer: BoardSigner
  /** Takes posts that their rooms want screened. */
  readonly screening: ScreeningQueue
  readonly limitsOn: boolean
}

export type Works = {
  readonly courier: Courier
  readonly welcome: Welcome
  /** What an earlier run has left is said, and what fell due since is recorded. */
  resume(): Promise<void>
  close(): void
}

export function openWorks({ house, news, directory, signer, limitsOn, screening, clock }: WorksOptions): Works {
  const { later, wallSeconds } = clock
  const market = new MarketClock(house, directory.facts.generation, clock)
  const courier = new Courier({
    actors: house,
    screen: (post) => screening.add(post),
    noteChange: (room, change) => news.noteChange(room, change),
    handles: news.handles,
    sign: (fields, cause) => signer.signed(fields, cause),
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
  house.listen({
    shardNews: (shard, told) => {
      if (told[0] === 'mail') courier.mail(shard, told[1])
    },
    shardRestarted: (shard) => courier.mail(shard),
  })
  return {
    courier,
    welcome,
    resume: async () => {
      await courier.resume()
      await market.begin()
      welcome.resume()
    },
    close: () => {
      courier.close()
      market.close()
      welcome.close()
    },
  }
}
