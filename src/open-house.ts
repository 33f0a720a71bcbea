/** Starts the house and lets what it tells reach who wants to know: news of rooms and people, followers, new heads. */

import { queuesOf } from '../actors/kernel/limits.ts'
import { nameOf } from '../actors/log/book.ts'
import type { Head } from '../actors/shard.ts'
import type { BlobFiles } from '../storage/blob-files.ts'
import type { BoardDirectory } from './board-directory.ts'
import type { News } from './command/live-facts.ts'
import type { Config } from './config.ts'
import { explainFailure } from './failure.ts'
import type { Followers } from './follow/followers.ts'
import type { Mark } from './log/mark.ts'
import { log } from './observe.ts'
import { House } from './threads/actor-host.ts'
import type { Postroom } from './webhooks/thread-host.ts'
import type { Works } from './works/open.ts'

export async function openHouse(
  config: Config,
  {
    directory,
    news,
    followers,
    marks,
    files,
    onHead,
    postroom,
    onWorks,
  }: {
    directory: BoardDirectory
    news: News
    followers: Followers
    marks: readonly Mark[]
    /** Files of attachments. */
    files: BlobFiles
    onHead: (head: Head) => void
    /** Who delivers; there is none yet when the house is opened. */
    postroom: () => Postroom | undefined
    /** What shards say of works; there is nobody yet to hear it when the house is opened. */
    onWorks: (heard: (works: Works) => void) => void
  },
) {
  const started = await House.start({
    directory,
    diskReserveBytes: config.diskReserveBytes,
    segmentBytesMax: config.segmentBytesMax,
    compactSeconds: config.compactSeconds,
    queues: queuesOf(config.queueMax),
    limitsOn: config.limitsOn,
    onNews: (told) => {
      if (told[0] === 'live') return followers.hear(told)
      for (const [id, handle] of told[2]) news.handles.set(id, handle)
      news.notePeople(told[3])
      for (const [identity, isSuspended] of told[3].suspended) postroom()?.suspended(identity, isSuspended)
      for (const [room, change] of told[1]) news.noteChange(room, change)
      followers.hear(told)
      postroom()?.published()
    },
    handles: () => news.handles.all(),
    onPrivateNews: (shard, told) => {
      if (told[0] === 'moved') postroom()?.moved(shard)
      else if (told[0] === 'carry') onWorks(({ carrier }) => carrier.carry(shard, told[1]))
      else if (told[0] === 'at rest') onWorks(({ carrier }) => carrier.atRest(shard))
      else if (told[0] === 'requested') onWorks((works) => works.requested(told[1]))
      else if (told[0] === 'unneeded') for (const [room, sha256] of told[1]) files.drop(room, sha256)
      else followers.hearPrivate(shard, told)
    },
    onShardLost: (shard) => {
      followers.shardLost(shard)
      onWorks(({ carrier }) => carrier.shardLost(shard))
    },
    onShardRestart: (shard) => {
      followers.shardRestarted(shard)
      postroom()?.shardRestarted(shard)
      news.shardRestarted(shard, directory.facts.shards)
    },
    marks,
    onHead: (head, change) => news.noteHead(head, change),
    onPublished: ({ head }) => {
      onHead(head)
      postroom()?.published()
    },
    onFatal: (thread, words) => stopForGood({ ...words, thread }),
  })
  const { published, handles, people } = started.facts
  news.noteHead(published.head, published.change)
  const tellShards = (known: readonly (readonly [identity: string, handle: string])[]) => {
    for (let shard = 0; shard < started.house.shards; shard++) started.house.tellShard(shard, ['handles', known])
  }
  for (const [id, handle] of handles) news.handles.set(id, handle)
  tellShards(news.handles.all())
  news.handles.onNew((identity, handle) => tellShards([[identity, handle]]))
  news.notePeople(people)
  return started
}

/** The process cannot go on: its supervisor starts it again, into recovery. */
export function stopForGood(error: unknown): never {
  log('error', 'fatal', explainFailure(error))
  process.exit(70)
}

/** Asks the feed as any client would. */
export function consistencyPath(house: House, origin: string, from: number, to: number): Promise<Buffer[] | undefined> {
  return new Promise((resolve) =>
    house.read({ op: 'log.consistency', args: { log: nameOf(origin), from, to }, reader: '' }, (found) => {
      if (found === undefined || !found.ok) return resolve(undefined)
      const { consistency_path } = JSON.parse(found.json) as { consistency_path: string[] }
      resolve(consistency_path.map((hash) => Buffer.from(hash, 'hex')))
    }),
  )
}
