/** What the board does about works and credits on its own: letters between shards, the clock of the market, welcome grants. */
import { createHmac } from 'node:crypto'
import type { BoardDirectory } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { ScreeningQueue } from '../moderation/screening.ts'
import { log } from '../observe.ts'
import type { ActorHost } from '../workers/actor-host.ts'
import type { BufferedNews } from '../workers/buffered-news.ts'
import { Carrier } from '../works/carrier.ts'
import { MarketClock } from '../works/clock.ts'
import { Welcome } from '../works/welcome.ts'

type WorksOptions = {
  readonly news: LiveFacts
  readonly actorHost: ActorHost
  /** News about works that shards have reported since they started. */
  readonly workNews: BufferedNews
  readonly directory: BoardDirectory
  readonly clock: Clock
  /** Takes posts that their rooms want screened. */
  readonly screening: ScreeningQueue
  readonly limitsOn: boolean
}

export type Works = {
  readonly welcome: Welcome
  /** Delivers the letters that an earlier run left, and records what came due since. */
  resume(): Promise<void>
  close(): void
}

export function openWorks({ actorHost, workNews, news, directory, limitsOn, screening, clock }: WorksOptions): Works {
  const { later, wallSeconds } = clock
  const market = new MarketClock(actorHost, directory.facts.generation, clock)
  const carrier = new Carrier({
    actors: actorHost,
    noteChange: (room, change) => news.noteChange(room, change),
    later,
    report: (facts) => log('warn', 'work.not_said', facts),
  })
  workNews.passTo({
    shardNews: (shard, update) => {
      if (update[0] === 'carry') carrier.carry(shard, update[1])
      else if (update[0] === 'at rest') carrier.atRest(shard)
      else if (update[0] === 'requested') {
        const { room, id, change, screen } = update[1]
        if (change !== undefined) news.noteChange(room, change)
        if (screen !== undefined) screening.add({ id, room, kind: 'request', isReply: false, ...screen })
      }
    },
    shardLost: (shard) => carrier.shardLost(shard),
  })
  const welcome = new Welcome({
    actors: actorHost,
    limitsOn,
    secret: createHmac('sha256', directory.identity.seed).update('broadside-networks-v1').digest(),
    board: directory.identity.id,
    wallSeconds,
    later,
  })
  return {
    welcome,
    resume: async () => {
      await carrier.resume()
      await market.begin()
      welcome.resume()
    },
    close: () => {
      carrier.close()
      market.close()
      welcome.close()
    },
  }
}
