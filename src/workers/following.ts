/** The thread of a follower that fetches the leader's frames. The main thread passes them to the threads that own the journals. */
import { internalLimits } from '../../actors/kernel/limits.ts'
import { type Answered, Link, type Port } from '../../actors/kernel/link.ts'
import { type CopiedFrames, Diverged, type JournalPlace } from '../../storage/copied-frames.ts'
import type { FollowSettings, ReplicationSettings, StreamSettings } from '../config.ts'
import { Attachments } from '../replication/attachments.ts'
import { type FollowedStream, Follower, type Standing } from '../replication/follower.ts'
import { knownOf } from '../replication/follower-directory.ts'
import { type Leader, leaderOf } from '../replication/leader.ts'
import { openStream } from '../replication/open-stream.ts'
import { seedIn } from '../replication/seed.ts'
import type { SharedSettings } from '../replication/shared-settings.ts'
import { StreamReader } from '../replication/stream-reader.ts'
import { forgetEveryMs, StreamSeal } from '../replication/stream-seal.ts'
import { streamStateIn } from '../replication/writer.ts'
import { saveLeaderPositions } from '../webhooks/leader-positions.ts'
import type { ThreadPlatform, ThreadStarter } from './thread.ts'

export type FollowingThread = {
  readonly dataDirectory: string
  readonly serviceId: string
  readonly settings: FollowSettings
  readonly shared: SharedSettings
  /** With less free disk space than this, no frames are taken. */
  readonly diskReserveBytes: number
  readonly front: Port
}

/** What it requests from the main thread: where the journals end, now or after appending these frames. */
export type FollowingAsk = readonly ['places'] | readonly ['take', readonly CopiedFrames[]]

export type FollowingAnswer =
  | { readonly ok: true; readonly places: readonly JournalPlace[] }
  | { readonly ok: false; readonly problem: string; readonly isForGood: boolean }

/** What it reports to the main thread. `vacantAfter`: the leader has been silent since this message of the stream and may be replaced. */
export type FollowingTell = Standing | { readonly vacantAfter: number }

/** A leader with quorum acks is heard every 4 s. Electing a new leader, of the servers or of the network, takes up to 7 s. */
const silentMs = 20_000
/** Spreads several followers apart, so that one is first: within about a second it closes and opens the stream as leader. */
const apartMs = 6_000

/** How it reaches the leader and the stream. */
type Ways = {
  readonly leader: Leader
  readonly openStream: (stream: StreamSettings) => Promise<FollowedStream>
  /** Only for a follower that may lead. */
  readonly newest: (lead: ReplicationSettings) => Promise<number>
}

export const thread: ThreadStarter<FollowingThread> = (data, here) => {
  const { settings, serviceId } = data
  const { disk, clock } = here
  return following(data, here, {
    leader: leaderOf(settings, { disk, clock }),
    openStream: ({ servers, keyFile }) => StreamReader.open({ servers, seed: seedIn(disk, keyFile), serviceId, clock }),
    newest: async (lead) => {
      const stream = await openStream({ disk, clock }, lead, serviceId, 'refuse')
      try {
        const { lastSeq } = await stream.state()
        if (lastSeq === 0)
          throw new Error('The stream is empty: the leader has published nothing since it was created.')
        // Servers without a majority still report where the stream ends, but only their leader can say what is in it.
        await stream.read(lastSeq)
        return lastSeq
      } finally {
        await stream.close()
      }
    },
  })
}

/** The thread, with these connections. */
export function following(
  data: FollowingThread,
  { disk, clock, random, report }: ThreadPlatform,
  { leader, openStream, newest }: Ways,
): ReturnType<typeof thread> {
  const { dataDirectory, settings, diskReserveBytes } = data
  const front = new Link({
    port: data.front,
    openMax: 2,
    patienceMs: internalLimits.patienceMs,
    now: clock.monotonicMs,
    timers: clock,
  })
  const ask = (asked: FollowingAsk): Promise<readonly JournalPlace[]> =>
    new Promise((resolve, reject) =>
      front.ask(asked, (answered: Answered<FollowingAnswer, undefined>) => {
        if (!answered.ok) return reject(new Error(`the threads of this follower did not answer (${answered.silence})`))
        const { body } = answered
        if (body.ok) return resolve(body.places)
        reject(body.isForGood ? new Diverged(body.problem) : new Error(body.problem))
      }),
    )
  const { stream, lead } = settings
  const known = knownOf(disk, dataDirectory)
  if (known === undefined) throw new Error(`${dataDirectory} is not the directory of a follower`)
  const seal = new StreamSeal({ disk, dataDirectory, wallSeconds: clock.wallSeconds, random })
  const stopForgetting = clock.every(() => seal.forget(), forgetEveryMs)
  const follower = new Follower({
    clock,
    seal,
    leader,
    known,
    settings: data.shared,
    report,
    attachments: new Attachments(disk, dataDirectory, leader),
    openStream: stream && (() => openStream(stream)),
    places: () => ask(['places']),
    take: (shares) => ask(['take', shares]),
    hasRoom: () => disk.freeBytes(dataDirectory) >= diskReserveBytes,
    keepDeliveries: (text) => saveLeaderPositions(disk, dataDirectory, text),
    tell: (standing) => front.tell(standing satisfies FollowingTell),
    ...(lead
      ? {
          vacancy: {
            silentMs,
            turnMs: (random(2).readUInt16BE() / 65_536) * apartMs,
            newest: () => newest(lead),
            self: streamStateIn(disk, dataDirectory)?.leader,
            found: (after: number) => front.tell({ vacantAfter: after } satisfies FollowingTell),
          },
        }
      : {}),
  })
  const running = follower.run()
  return {
    facts: {},
    stop: async () => {
      stopForgetting()
      leader.close()
      await follower.stop()
      await running
      front.close()
    },
  }
}
